// What a timeline must say about a run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/headrace.h"
#include "tests/support/device_buffer.h"

namespace headrace::tests {

// `num_records` records that no run has touched.
std::vector<headrace_timeline_record> untouched_timeline(std::size_t num_records);

// The records that a buffer of nothing else holds now; waits for the runs before.
std::vector<headrace_timeline_record> read_timeline(const DeviceBuffer& timeline);

// What is wrong with the records of a run of the first `num_requests` rows by `num_workers`, by the
// first record that is; "" if nothing is. They were untouched_timeline() before. `plan_json` is the
// plan's description, planned for the lengths that were run.
std::string timeline_defect(std::string_view plan_json,
                            std::span<const headrace_timeline_record> records,
                            std::int32_t num_requests, std::int32_t num_workers);

}  // namespace headrace::tests
