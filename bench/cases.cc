#include "bench/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "bench/names.h"

namespace headrace::bench {
namespace {

struct Requests {
  std::int32_t batch;
  std::string profile;
};

std::vector<Requests> grid_requests() {
  std::vector<Requests> requests;
  for (const std::int32_t batch : {1, 8, 32, 128, 256}) {
    for (std::int32_t tokens = 1024; tokens <= 131072; tokens *= 2) {
      requests.push_back({batch, fmt::format("uniform:{}", tokens)});
    }
  }
  // Batches that do not divide the work evenly, and mixes of lengths.
  for (const std::int32_t batch : {9, 17, 18, 20, 34}) requests.push_back({batch, "uniform:8192"});
  for (const std::int32_t batch : {8, 32, 128, 256}) {
    requests.push_back({batch, "lognormal:2048,1.2"});
  }
  requests.push_back({256, "lognormal:2048,1.8"});
  requests.push_back({32, "one-long:131072,31,4096"});
  requests.push_back({128, "one-long:131072,127,2048"});
  requests.push_back({32, "one-long:131072,31,512"});
  requests.push_back({1, "uniform:524288"});
  return requests;
}

// The given values, which the grid must have; all of the grid's if none are given.
template <typename T, typename Name>
std::vector<T> choose(const char* option, const std::vector<T>& given, const std::vector<T>& grid,
                      Name name) {
  if (given.empty()) return grid;
  for (const T& value : given) {
    if (std::find(grid.begin(), grid.end(), value) != grid.end()) continue;
    std::vector<std::string> names;
    for (const T& known : grid) names.push_back(name(known));
    throw std::invalid_argument(
        fmt::format("{}: the grid has {}; given {}", option, fmt::join(names, ", "), name(value)));
  }
  return given;
}

ProblemConfig make_case(const Options& options, const Profile& profile, std::int32_t batch,
                        const PoolShape& pool) {
  return {.profile = profile.text(),
          .seq_lens = profile.lengths(batch, options.seed),
          .num_qo_heads = options.num_qo_heads,
          .pool = pool,
          .head_scales = options.head_scales && pool.dtype == HEADRACE_FLOAT8_E4M3,
          .seed = options.seed};
}

// Cache types outermost: the pools are filled anew when the type changes.
template <typename Use>
void for_each_pool(const Options& options, Use use) {
  for (const headrace_dtype dtype : options.cache_dtypes) {
    for (const headrace_layout layout : options.layouts) {
      for (const std::int32_t num_kv_heads : options.kv_heads) {
        for (const std::int32_t page_size : options.page_sizes) {
          use(PoolShape{num_kv_heads, options.head_dim, page_size, dtype, layout});
        }
      }
    }
  }
}

}  // namespace

std::vector<ProblemConfig> run_cases(const Options& options) {
  std::vector<ProblemConfig> cases;
  for_each_pool(options, [&](const PoolShape& pool) {
    for (const Profile& profile : options.profiles) {
      for (const std::int32_t batch : options.batches) {
        cases.push_back(make_case(options, profile, batch, pool));
        if (profile.fixes_batch()) break;
      }
    }
  });
  return cases;
}

std::vector<ProblemConfig> grid_cases(const Options& options) {
  const auto number = [](std::int32_t value) { return std::to_string(value); };
  const std::vector<Requests> requests = grid_requests();
  std::vector<std::int32_t> all_batches;
  for (const Requests& each : requests) all_batches.push_back(each.batch);
  std::sort(all_batches.begin(), all_batches.end());
  all_batches.erase(std::unique(all_batches.begin(), all_batches.end()), all_batches.end());

  Options chosen = options;
  chosen.batches = choose("--batch", options.batches, all_batches, number);
  chosen.kv_heads = choose("--kv-heads", options.kv_heads, {32, 8, 4}, number);
  chosen.page_sizes = choose("--page-size", options.page_sizes, {16, 64}, number);
  chosen.cache_dtypes =
      choose("--dtype", options.cache_dtypes, {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3},
             [](headrace_dtype dtype) { return name_of(dtypes(), dtype); });

  std::vector<ProblemConfig> cases;
  for_each_pool(chosen, [&](const PoolShape& pool) {
    for (const Requests& each : requests) {
      if (std::find(chosen.batches.begin(), chosen.batches.end(), each.batch) ==
          chosen.batches.end()) {
        continue;
      }
      ProblemConfig config = make_case(chosen, Profile::parse(each.profile), each.batch, pool);
      const double megabytes = static_cast<double>(config.kv_bytes()) / 1e6;
      if (megabytes >= options.min_mb && megabytes <= options.max_mb) {
        cases.push_back(std::move(config));
      }
    }
  });
  if (cases.empty()) {
    throw std::invalid_argument(fmt::format("--min-mb {} and --max-mb {} leave nothing of the grid",
                                            options.min_mb, options.max_mb));
  }
  return cases;
}

std::vector<Launch> launches(const Options& options, headrace_device device) {
  const bool on_gpu = device == HEADRACE_DEVICE_CUDA;
  std::vector<LaunchKind> kinds = options.launches;
  if (kinds.empty()) {
    kinds = {kPlainLaunch};
    if (on_gpu && options.command == Command::kGrid) kinds.push_back(kDependentLaunch);
  }
  std::vector<Launch> launches;
  for (const LaunchKind kind : kinds) {
    launches.push_back({kind, kind == kDependentLaunch ? options.fresh_tokens.value_or(1) : 0});
  }
  const bool any_dependent = std::any_of(launches.begin(), launches.end(),
                                         [](const Launch& each) { return each.is_dependent(); });
  if (any_dependent && !on_gpu) {
    throw std::invalid_argument("--launch: dependent needs a GPU, given a CPU");
  }
  if (options.fresh_tokens && !any_dependent) {
    throw std::invalid_argument("--fresh-tokens: needs dependent launches, given plain ones alone");
  }
  return launches;
}

}  // namespace headrace::bench
