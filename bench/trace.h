// A timeline in the trace-event format that Chrome's tracing page and Perfetto read.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/timeline.h"

namespace headrace::bench {

// Every step is a process, every worker a few of its threads ("lanes"). An item is three slices,
// from wanted to issued, on to computed, on to finished, each in a lane of its kind and with its
// phases inside. Items of one worker overlap, so a kind has as many lanes as keep slices of one
// lane apart. Times are microseconds since the first item was wanted.
nlohmann::ordered_json to_trace(const Timeline& timeline);

}  // namespace headrace::bench
