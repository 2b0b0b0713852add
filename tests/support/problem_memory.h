// A problem in device memory: its inputs, and outputs full of NaN.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "headrace/headrace.h"
#include "tests/support/device_buffer.h"
#include "tests/support/problem.h"

namespace headrace::tests {

struct Result {
  std::vector<std::byte> out;  // the whole buffer, gaps included
  std::vector<std::byte> lse;  // the same; empty when not wanted
  std::string damage;          // what was written that must not be; "" if nothing

  bool operator==(const Result&) const = default;
};

class ProblemMemory {
 public:
  ProblemMemory(const Problem& problem, headrace_device device, Guards guards, bool want_lse);

  // Brings the inputs anew, as the problem is now (of the same sizes as before), and fills the
  // outputs with NaN.
  void upload();

  // All but the workspace, which the caller sets.
  headrace_run_args args() const;

  Result collect() const;

 private:
  std::string find_damage(const Result& result) const;

  const Problem& problem_;
  DeviceBuffer q_;
  std::array<DeviceBuffer, 2> pools_;
  DeviceBuffer block_table_;
  DeviceBuffer seq_lens_;
  std::optional<DeviceBuffer> k_scale_;
  std::optional<DeviceBuffer> v_scale_;
  DeviceBuffer out_;
  std::optional<DeviceBuffer> lse_;
};

// Row (request, head) of a result, as numbers or as it lies in memory.
std::vector<float> out_row(const Problem& problem, const Result& result, std::size_t request,
                           std::int32_t head);
float lse_value(const Problem& problem, const Result& result, std::size_t request,
                std::int32_t head);
// Out and lse of all heads of a request, bit for bit.
std::vector<std::byte> request_bits(const Problem& problem, const Result& result,
                                    std::size_t request);

}  // namespace headrace::tests
