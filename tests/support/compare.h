// Results against the float64 reference: the one place with tolerances.
//
// A kernel works in float32, whose unit roundoff is u = 2^-24, and rounds its output once. To first
// order its errors are
// * in a score: a multiple of u times the sum of |q k| that the dot product adds up, scaled
//   (AttentionResult's `size`). It changes the token's weight by that much relative to itself.
//   On the average over lanes and signs the multiple is far below the worst case, head_dim.
// * in the weight of a token besides, and in its product with V: a few u.
// * in the running sums of a long request: each of n tiles adds a rounding error of up to u; since
//   they have no common sign, the sum grows as sqrt(n).
// A weight counts in the numerator and in the denominator, so with
//   c = kTermErrors + sqrt(seq_len / kTileTokens),  s = kScoreErrors:
//   |out - exact| <= slack + half an ulp of the output dtype,
//     slack = u (2 c abs_out + s (abs_out_scored + |exact| abs_score)) + kUnderflow
//   |lse - exact| <= u (c + s abs_score + 2 |exact|)
// kUnderflow is there for weights below 2^-126, which lose digits or are flushed to 0. The bounds
// for inputs of deviation 1 are near 1e-6 in both.
// In 1000 random problems (AVX2) errors reach 0.45 of the bounds in float32 outputs, 0.47 in lse.
//
// A CUDA kernel multiplies 16-bit probabilities on tensor cores, which also truncate where they
// add, so it is held to bars on whole tensors instead: over a problem, the RMS of the errors is at
// most 0.25 % of the RMS of the exact outputs (rounding these to bf16 costs 0.17 % on average), and
// no error is above 0.5 % of the largest exact output. Each request must meet the same by itself,
// or the small outputs of a long one would drown among those of a short one; there the RMS may
// reach 0.3 %, because the mean over as few as 128 roundings scatters. The lse is within 1e-5,
// relative where it is above 1, or four of the bounds above where scores are small sums of large
// terms. Requests of length 0 are exact.
#pragma once

#include <string>
#include <vector>

#include "tests/support/problem.h"
#include "tests/support/problem_memory.h"

namespace headrace::tests {

struct Expected {
  std::vector<double> out;        // [requests, num_qo_heads, head_dim]
  std::vector<double> out_slack;  // the same shape
  std::vector<double> lse;        // [requests, num_qo_heads]
  std::vector<double> lse_slack;  // the same shape
};

// Runs the reference.
Expected solve(const Problem& problem);

// What is wrong with a result of the tested device, damage included, and by the worst element; ""
// if nothing is.
std::string defect(const Problem& problem, const Expected& expected, const Result& result);
std::string defect(const Problem& problem, const Result& result);

}  // namespace headrace::tests
