// Instruction sets left out. SSE4 has no fp16 conversions, and its machines are gone; the baseline
// serves them. The first AVX-512 machines look up no bytes and lower their clock; AVX2 serves them.
// Vectors of a size unknown at compile time (SVE, RVV) cannot lie in arrays.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#define HWY_WANT_AVX3_DL  // AVX-512 from Ice Lake and Zen 4 on

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend.cc"
#include "kernels/cpu/attend.h"

#include "hwy/foreach_target.h"  // includes this file once per instruction set
#include "hwy/highway.h"
#include "kernels/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::cpu {
namespace HWY_NAMESPACE {

void attend_tokens(const kernels::DecodeParams& params, const ItemShape& shape,
                   const scheduler::WorkItem& item, const scheduler::TokenRange& tokens,
                   const Scratch& scratch, const Partial& result) {
  switch (params.kv_dtype) {
    case kernels::DType::kBFloat16:
      return Attention<BFloat16>(params, shape, item, scratch).run(tokens, result);
    case kernels::DType::kFloat16:
      return Attention<Float16>(params, shape, item, scratch).run(tokens, result);
    case kernels::DType::kFloat32:
      return Attention<Float32>(params, shape, item, scratch).run(tokens, result);
    case kernels::DType::kFloat8E4M3:
      return Attention<Float8E4M3>(params, shape, item, scratch).run(tokens, result);
  }
}

const char* target_name() {
  return can_multiply_pairs() ? "AVX3_DL with AVX512_BF16" : hwy::TargetName(HWY_TARGET);
}

}  // namespace HWY_NAMESPACE
}  // namespace headrace::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::cpu {

HWY_EXPORT(attend_tokens);
HWY_EXPORT(target_name);

void attend(const kernels::DecodeParams& params, const ItemShape& shape,
            const scheduler::WorkItem& item, const scheduler::TokenRange& tokens,
            const Scratch& scratch, const Partial& result) {
  HWY_DYNAMIC_DISPATCH(attend_tokens)(params, shape, item, tokens, scratch, result);
}

const char* attend_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace headrace::cpu
#endif
