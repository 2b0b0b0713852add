/* A program that uses an installed headrace from C: one request of three tokens, all of them of
 * the same weight because q is 0, so that out is the mean of V and lse is log(3). */
#include <headrace/headrace.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kHeadDim = 64, kPageSize = 4, kTokens = 3 };

static void require(headrace_status status) {
  if (status == HEADRACE_OK) return;
  fprintf(stderr, "%s: %s\n", headrace_status_string(status), headrace_last_error());
  exit(1);
}

int main(void) {
  headrace_context_options context_options = headrace_context_options_default();
  context_options.num_workers = 2;
  headrace_context* context = NULL;
  require(headrace_context_create(&context_options, &context));

  headrace_attention_desc desc = headrace_attention_desc_default();
  desc.num_qo_heads = desc.num_kv_heads = 1;
  desc.head_dim = kHeadDim;
  desc.page_size = kPageSize;
  desc.q_dtype = desc.kv_dtype = desc.out_dtype = HEADRACE_FLOAT32;
  headrace_plan_options plan_options = headrace_plan_options_default();
  plan_options.max_requests = 1;
  headrace_plan_sizes sizes;
  sizes.struct_size = sizeof(sizes);
  require(headrace_plan_get_sizes(context, &desc, &plan_options, &sizes));

  /* aligned_alloc wants a multiple of the alignment. */
  const size_t mask = sizes.alignment - 1;
  void* plan_buffer = aligned_alloc(sizes.alignment, (sizes.plan_bytes + mask) & ~mask);
  void* workspace = aligned_alloc(sizes.alignment, (sizes.workspace_bytes + mask) & ~mask);
  headrace_plan* plan = NULL;
  require(
      headrace_plan_create(context, &desc, &plan_options, plan_buffer, sizes.plan_bytes, &plan));

  static float q[kHeadDim], k[kPageSize * kHeadDim], v[kPageSize * kHeadDim], out[kHeadDim];
  for (int t = 0; t < kTokens; ++t) {
    for (int d = 0; d < kHeadDim; ++d) v[t * kHeadDim + d] = (float)t;
  }
  const int32_t seq_len = kTokens;
  const int32_t page = 0;
  float lse = 0;
  headrace_run_args args = headrace_run_args_default();
  args.num_requests = 1;
  args.validate = 1;
  args.q = q;
  args.k_cache = k;
  args.v_cache = v;
  args.num_pages = 1;
  args.block_table = &page;
  args.block_table_stride = 1;
  args.seq_lens = &seq_len;
  args.out = out;
  args.lse = &lse;
  args.workspace = workspace;
  args.workspace_bytes = sizes.workspace_bytes;
  require(headrace_plan_update(plan, &seq_len, 1, NULL));
  require(headrace_run(plan, &args));

  int wrong = fabsf(lse - 1.0986123f) > 1e-5f;
  for (int d = 0; d < kHeadDim; ++d) wrong += fabsf(out[d] - 1.0f) > 1e-5f;
  printf("headrace %s: out %g, lse %g\n", headrace_version(), out[0], lse);

  headrace_plan_destroy(plan);
  headrace_context_destroy(context);
  free(plan_buffer);
  free(workspace);
  return wrong != 0;
}
