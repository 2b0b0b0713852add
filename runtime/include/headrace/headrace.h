/* headrace: paged decode attention for LLM inference engines. The C ABI, valid C11 and C++20.
 *
 * Every request brings one query token and attends to all keys and values it has cached, which lie
 * in fixed-size pages. For request r, query head h and KV head g = h / (num_qo_heads /
 * num_kv_heads):
 *
 *   score[t] = sm_scale * k_scale[g] * dot(q[r, h], K[t, g])         for 0 <= t < seq_lens[r]
 *   out[r,h] = v_scale[g] * sum_t exp(score[t] - lse[r, h]) * V[t, g]
 *   lse[r,h] = log(sum_t exp(score[t]))                              (natural logarithm)
 *
 * where token t of request r lies in page block_table[r, t / page_size] at position t % page_size.
 * A request of length 0 gets out = 0 and lse = -inf.
 *
 * Use: create a context; describe the attention; ask for sizes; create a plan on buffers of yours;
 * then per step headrace_plan_update() once and headrace_run() once per layer.
 *
 * Every function returns a status; headrace_last_error() has the message of this thread's last
 * failure, with the value needed and the value given. On any failure outputs are untouched. The
 * library never prints, exits or aborts. Distinct plans may be used from distinct threads at the
 * same time; a single plan, and a single workspace, serve one call at a time.
 */
#ifndef HEADRACE_HEADRACE_H_
#define HEADRACE_HEADRACE_H_

#include <stddef.h>
#include <stdint.h>

#define HEADRACE_VERSION_MAJOR 0
#define HEADRACE_VERSION_MINOR 1
#define HEADRACE_VERSION_PATCH 0

#if defined(_WIN32)
#define HEADRACE_API
#else
#define HEADRACE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum headrace_status {
  HEADRACE_OK = 0,
  HEADRACE_INVALID_ARGUMENT = 1, /* a value the call can never accept */
  HEADRACE_UNSUPPORTED = 2,      /* valid, but not in this build or on this device */
  HEADRACE_BUFFER_TOO_SMALL = 3, /* the message names the bytes needed and given */
  HEADRACE_OUT_OF_CAPACITY = 4,  /* more requests than the plan was created for, or planned */
  HEADRACE_INVALID_DATA = 5,  /* validation mode: a bad length or page id, named in the message */
  HEADRACE_OUT_OF_MEMORY = 6, /* host memory for a handle or its worker threads */
  HEADRACE_INTERNAL = 7,      /* a defect of the library */
  HEADRACE_CUDA_ERROR = 8     /* a call of the CUDA runtime failed; the message names it */
} headrace_status;

typedef enum headrace_device {
  HEADRACE_DEVICE_AUTO = 0, /* CUDA where build and machine have it, else CPU */
  HEADRACE_DEVICE_CPU = 1,
  HEADRACE_DEVICE_CUDA = 2
} headrace_device;

typedef enum headrace_dtype {
  HEADRACE_BFLOAT16 = 0,
  HEADRACE_FLOAT16 = 1,
  HEADRACE_FLOAT32 = 2,
  HEADRACE_FLOAT8_E4M3 = 3 /* OCP e4m3fn: no infinities; caches only */
} headrace_dtype;

typedef enum headrace_layout {
  HEADRACE_NHD = 0, /* pool [num_pages, page_size, num_kv_heads, head_dim] */
  HEADRACE_HND = 1  /* pool [num_pages, num_kv_heads, page_size, head_dim] */
} headrace_layout;

typedef struct headrace_context headrace_context;
typedef struct headrace_plan headrace_plan;

/* Context: a device and its workers. */

typedef struct headrace_context_options {
  size_t struct_size; /* sizeof(headrace_context_options) */
  headrace_device device;
  int32_t num_workers; /* CPU threads, the caller's included, or CUDA blocks, at most 4096; 0: as
                          many as the device has */
} headrace_context_options;

static inline headrace_context_options headrace_context_options_default(void) {
  headrace_context_options options;
  options.struct_size = sizeof(headrace_context_options);
  options.device = HEADRACE_DEVICE_AUTO;
  options.num_workers = 0;
  return options;
}

/* Creates a context. Errors: UNSUPPORTED (no such device in this build or machine),
 * INVALID_ARGUMENT, OUT_OF_MEMORY. */
HEADRACE_API headrace_status headrace_context_create(const headrace_context_options* options,
                                                     headrace_context** context);
/* Destroys a context; null is allowed. Its plans must be destroyed first. */
HEADRACE_API void headrace_context_destroy(headrace_context* context);

typedef struct headrace_context_info {
  size_t struct_size;
  headrace_device device; /* never AUTO */
  int32_t num_workers;
  const char* description; /* e.g. "CPU, 8 threads, AVX2"; lives as long as the context */
} headrace_context_info;

/* Fills *info, whose struct_size the caller has set. */
HEADRACE_API headrace_status headrace_context_get_info(const headrace_context* context,
                                                       headrace_context_info* info);

/* What to compute. */

/* Strides are in elements; 0 means packed for the layout, around the strides that are given. Head
 * dim is contiguous everywhere. Heads and tokens of a page, heads and requests of a tensor must not
 * overlap; pages may lie anywhere. */
typedef struct headrace_attention_desc {
  size_t struct_size;
  int32_t num_qo_heads;     /* a multiple of num_kv_heads; their ratio, the group, is 1 to 64 */
  int32_t num_kv_heads;     /* 1 to 65536 */
  int32_t head_dim;         /* 64, 80, 96, 128, 192 or 256 */
  int32_t page_size;        /* tokens per page, 1 to 1048576 */
  headrace_dtype q_dtype;   /* bf16, fp16 or f32 */
  headrace_dtype kv_dtype;  /* bf16, fp16, f32 or fp8 e4m3 */
  headrace_dtype out_dtype; /* bf16, fp16 or f32 */
  headrace_layout layout;   /* gives the packed strides of the pools */
  float sm_scale; /* multiplies q . k; any finite value. 1 / sqrt(head_dim) is customary */
  /* Element (page, token, head, d) of a pool lies at
   * page * page_stride + token * token_stride + head * head_stride + d. An interleaved pool
   * [num_pages, 2, ...] is two pools with twice the page stride. */
  int64_t k_page_stride, k_token_stride, k_head_stride;
  int64_t v_page_stride, v_token_stride, v_head_stride;
  int64_t q_request_stride, q_head_stride;     /* packed [num_requests, num_qo_heads, head_dim] */
  int64_t out_request_stride, out_head_stride; /* packed [num_requests, num_qo_heads, head_dim] */
  int64_t lse_request_stride, lse_head_stride; /* packed [num_requests, num_qo_heads] */
} headrace_attention_desc;

/* bf16 everywhere, NHD, page size 16, head dim 128, sm_scale 1/sqrt(128), packed strides. The two
 * head counts are left 0 and must be set. */
static inline headrace_attention_desc headrace_attention_desc_default(void) {
  headrace_attention_desc desc;
  desc.struct_size = sizeof(headrace_attention_desc);
  desc.num_qo_heads = 0;
  desc.num_kv_heads = 0;
  desc.head_dim = 128;
  desc.page_size = 16;
  desc.q_dtype = HEADRACE_BFLOAT16;
  desc.kv_dtype = HEADRACE_BFLOAT16;
  desc.out_dtype = HEADRACE_BFLOAT16;
  desc.layout = HEADRACE_NHD;
  desc.sm_scale = 0.08838834764831845f;
  desc.k_page_stride = desc.k_token_stride = desc.k_head_stride = 0;
  desc.v_page_stride = desc.v_token_stride = desc.v_head_stride = 0;
  desc.q_request_stride = desc.q_head_stride = 0;
  desc.out_request_stride = desc.out_head_stride = 0;
  desc.lse_request_stride = desc.lse_head_stride = 0;
  return desc;
}

/* Plan. */

/* Buffer sizes and launches depend on these alone, never on the lengths of a step. */
typedef struct headrace_plan_options {
  size_t struct_size;
  int32_t max_requests; /* 1 to 65536 */
  int32_t max_seq_len;  /* tokens, at least 1: bounds the splits of a request. Longer requests are
                           legal and right, only less balanced */
  int32_t invariant; /* 1: cut every request by its own length alone, so that it gives the same bits
                        alone and in any batch; needs a larger workspace */
  int32_t check_plans; /* 1: prove every plan after making it (slow; for debugging) */
} headrace_plan_options;

static inline headrace_plan_options headrace_plan_options_default(void) {
  headrace_plan_options options;
  options.struct_size = sizeof(headrace_plan_options);
  options.max_requests = 0;
  options.max_seq_len = 131072;
  options.invariant = 0;
  options.check_plans = 0;
  return options;
}

typedef struct headrace_plan_sizes {
  size_t struct_size;
  size_t plan_bytes;      /* control words and queue; belongs to one plan */
  size_t workspace_bytes; /* partial results; plans that never run at the same time may share it */
  size_t alignment;       /* of both buffers, bytes */
  size_t max_items;       /* items of the largest plan: records of a timeline */
} headrace_plan_sizes;

/* Fills *sizes (struct_size set by the caller) with the exact bytes for this description.
 * Errors: INVALID_ARGUMENT; UNSUPPORTED (another head dim, a group above 64, fp8 queries or
 * outputs, more than 2^28 queue items). */
HEADRACE_API headrace_status headrace_plan_get_sizes(const headrace_context* context,
                                                     const headrace_attention_desc* desc,
                                                     const headrace_plan_options* options,
                                                     headrace_plan_sizes* sizes);

/* Creates a plan on plan_buffer (memory of the context's device), which must outlive it, and
 * initialises its control words. The plan covers no requests until headrace_plan_update().
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, BUFFER_TOO_SMALL, OUT_OF_MEMORY. */
HEADRACE_API headrace_status headrace_plan_create(headrace_context* context,
                                                  const headrace_attention_desc* desc,
                                                  const headrace_plan_options* options,
                                                  void* plan_buffer, size_t plan_buffer_bytes,
                                                  headrace_plan** plan);
/* Destroys a plan; null is allowed. The buffer stays the caller's. */
HEADRACE_API void headrace_plan_destroy(headrace_plan* plan);

/* Plans for seq_lens [num_requests] (host memory, tokens, each >= 0). Allocates nothing. Lengths
 * may differ from those at run time: a stale plan is less balanced, never wrong. Stream-ordered on
 * CUDA; `stream` is ignored on CPU. Errors: INVALID_ARGUMENT, INVALID_DATA (a negative length),
 * OUT_OF_CAPACITY. The old plan stays. */
HEADRACE_API headrace_status headrace_plan_update(headrace_plan* plan, const int32_t* seq_lens,
                                                  int32_t num_requests, void* stream);

typedef enum headrace_plan_format {
  HEADRACE_PLAN_TEXT = 0, /* for people */
  HEADRACE_PLAN_JSON = 1
} headrace_plan_format;

/* Describes the current plan with the token ranges it was planned for, as a 0-terminated string.
 * On entry *text_bytes is the size of `text`, on return the size needed, terminator included.
 * `text` may be null to ask for the size. Errors: INVALID_ARGUMENT, BUFFER_TOO_SMALL. */
HEADRACE_API headrace_status headrace_plan_describe(const headrace_plan* plan,
                                                    headrace_plan_format format, char* text,
                                                    size_t* text_bytes);

/* Run. */

/* What happened to one item of a plan (in the order of headrace_plan_describe()) and when, in
 * nanoseconds of the device's clock: CUDA's global timer, or the host's steady clock. An item
 * without tokens may have no first and last byte: those two are left alone then. */
typedef struct headrace_timeline_record {
  uint32_t worker;     /* block or thread that ran the item */
  uint32_t merged;     /* 1: this item arrived last at its request and KV head, and merged */
  uint64_t wanted;     /* the worker asked for the item; of its first item, the worker began */
  uint64_t claimed;    /* the item is known */
  uint64_t issued;     /* its first copy is about to be issued */
  uint64_t first_byte; /* its first keys and values have arrived */
  uint64_t last_byte;  /* its last ones have */
  uint64_t computed;   /* all of them are computed */
  uint64_t finished;   /* output or partial result is written, merge included */
} headrace_timeline_record;

/* Pointers are memory of the context's device, aligned to their element. Shapes as in the
 * description. */
typedef struct headrace_run_args {
  size_t struct_size;
  int32_t num_requests; /* rows to compute, at most those planned; 0 does nothing */
  int32_t validate;     /* 1: check seq_lens and block_table first, name the first bad entry */
  const void* q;
  const void* k_cache;
  const void* v_cache;
  int64_t num_pages;          /* pages in each pool */
  const int32_t* block_table; /* [num_requests, block_table_stride]; entries at or past
                                 ceil(seq_len / page_size) are never read */
  int64_t block_table_stride; /* entries per row; bounds the length of a request */
  const int32_t* seq_lens;    /* [num_requests] tokens, read at run time */
  const float* k_scale;       /* [num_kv_heads] or null for 1 */
  const float* v_scale;       /* [num_kv_heads] or null for 1 */
  void* out;
  float* lse; /* or null if not wanted */
  void* workspace;
  size_t workspace_bytes;
  void* stream; /* cudaStream_t; ignored on CPU, where the call returns when the result is there */
  int32_t dependent_launch; /* 1: programmatic dependent launch. The step may start before the
                               kernel before it on the stream has ended; it waits for that kernel
                               before it reads q, the scales or fresh tokens and before it writes
                               anything, and lets the next kernel that is launched so start early as
                               well. 0: an ordinary launch. Ignored on CPU */
  int32_t fresh_tokens;     /* with dependent launch: how many tokens at the end of each request the
                               kernel before this one may still write. Older ones are read early, and
                               seq_lens and block_table must not be written by that kernel. -1: it may
                               write any of them, and nothing is read early */
  headrace_timeline_record*
      timeline; /* [headrace_plan_sizes.max_items], or null for none. Record i
                   is of the plan's item i; those of items that no row of this
                   run belongs to are left alone. Dependent launches that
                   overlap need records of their own: these are written early */
} headrace_run_args;

static inline headrace_run_args headrace_run_args_default(void) {
  headrace_run_args args;
  args.struct_size = sizeof(headrace_run_args);
  args.num_requests = 0;
  args.validate = 0;
  args.q = args.k_cache = args.v_cache = NULL;
  args.num_pages = 0;
  args.block_table = NULL;
  args.block_table_stride = 0;
  args.seq_lens = NULL;
  args.k_scale = args.v_scale = NULL;
  args.out = NULL;
  args.lse = NULL;
  args.workspace = NULL;
  args.workspace_bytes = 0;
  args.stream = NULL;
  args.dependent_launch = 0;
  args.fresh_tokens = -1;
  args.timeline = NULL;
  return args;
}

/* Computes out and lse. Allocates nothing. The workspace may hold anything before.
 * Errors: INVALID_ARGUMENT (null or misaligned pointer, bad stride), OUT_OF_CAPACITY,
 * BUFFER_TOO_SMALL, and in validation mode INVALID_DATA. */
HEADRACE_API headrace_status headrace_run(headrace_plan* plan, const headrace_run_args* args);

/* Information. */

/* Message of this thread's last failed call; "" if none. Valid until this thread's next failure. */
HEADRACE_API const char* headrace_last_error(void);
HEADRACE_API const char* headrace_status_string(headrace_status status);
/* "major.minor.patch" of the library at run time. */
HEADRACE_API const char* headrace_version(void);

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_HEADRACE_H_ */
