#include "bench/cpu/reference.h"

#include <algorithm>
#include <cmath>

#include "bench/number_format.h"

namespace headrace::bench::cpu {
namespace {

// softmax(sm_scale * k_scale * K q) V * v_scale of one query head into out [head_dim].
void attend(const headrace_attention_desc& desc, const headrace_run_args& args, RequestHead row,
            std::span<double> out) {
  const NumberFormat q_format = format_of(desc.q_dtype);
  const NumberFormat kv_format = format_of(desc.kv_dtype);
  const std::int64_t head_dim = desc.head_dim;
  const std::int32_t kv_head = row.head / (desc.num_qo_heads / desc.num_kv_heads);
  const std::int32_t length = args.seq_lens[row.request];
  const std::int32_t* pages = args.block_table + row.request * args.block_table_stride;
  const auto offset = [&](std::int32_t token) {
    const std::int64_t in_page = token % desc.page_size;
    const std::int64_t vector = desc.layout == HEADRACE_NHD
                                    ? in_page * desc.num_kv_heads + kv_head
                                    : std::int64_t{kv_head} * desc.page_size + in_page;
    const std::int64_t page_vectors = std::int64_t{desc.page_size} * desc.num_kv_heads;
    return (pages[token / desc.page_size] * page_vectors + vector) * head_dim;
  };

  std::fill(out.begin(), out.end(), 0.0);
  if (length == 0) return;
  std::vector<double> q(out.size());
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const std::int64_t q_row = std::int64_t{row.request} * desc.num_qo_heads + row.head;
    q[static_cast<std::size_t>(d)] = load(args.q, q_row * head_dim + d, q_format);
  }
  const double k_scale = args.k_scale == nullptr ? 1.0 : args.k_scale[kv_head];
  const double v_scale = args.v_scale == nullptr ? 1.0 : args.v_scale[kv_head];
  std::vector<double> scores(static_cast<std::size_t>(length));
  for (std::int32_t token = 0; token < length; ++token) {
    double dot = 0;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      dot += q[static_cast<std::size_t>(d)] * load(args.k_cache, offset(token) + d, kv_format);
    }
    scores[static_cast<std::size_t>(token)] = dot * desc.sm_scale * k_scale;
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (std::int32_t token = 0; token < length; ++token) {
    const double weight = std::exp(scores[static_cast<std::size_t>(token)] - max);
    sum += weight;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      out[static_cast<std::size_t>(d)] += weight * load(args.v_cache, offset(token) + d, kv_format);
    }
  }
  for (double& value : out) value *= v_scale / sum;
}

}  // namespace

std::vector<double> reference(const headrace_attention_desc& desc, const headrace_run_args& args,
                              std::span<const RequestHead> rows) {
  const auto head_dim = static_cast<std::size_t>(desc.head_dim);
  std::vector<double> out(rows.size() * head_dim);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    attend(desc, args, rows[i], std::span(out).subspan(i * head_dim, head_dim));
  }
  return out;
}

}  // namespace headrace::bench::cpu
