// How evenly the plans keep 132 workers busy, by simulation.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "host/planner.h"
#include "tests/catch.h"
#include "tests/support/random.h"
#include "tests/unit/planned.h"
#include "tests/unit/simulator.h"

namespace headrace::tests {
namespace {

constexpr std::uint32_t kWorkers = 132;
constexpr double kMaxRatio = 1.03;

// A worker's share below which 3 % is less than a worker can choose: it takes whole tiles, in items
// of at least the shortest split, and every cut costs an item that the ideal does not count.
constexpr double kSmallShareUs = 60;

host::PlannerConfig config_for(std::uint32_t num_kv_heads) {
  return {.max_requests = 256,
          .num_kv_heads = num_kv_heads,
          .num_workers = kWorkers,
          .max_seq_len = 1 << 20,
          .cost = {}};
}

// A worker's share from which on the planner leaves a dynamic tail: 64 of the shortest splits.
constexpr double kTailShareUs = 64 * (128 * 0.015 + 0.5);

double bound_us(double ideal, const host::CostModel& cost) {
  if (ideal >= kSmallShareUs) return kMaxRatio * ideal;
  return kMaxRatio * ideal + cost.min_split_tokens * cost.token_us + cost.item_us;
}

// Plans batches of one kind, and remembers the worst of them.
class Balance {
 public:
  explicit Balance(const host::PlannerConfig& config) : config_(config), planner_(config) {}

  void require_balanced(const std::vector<std::int32_t>& seq_lens) {
    const Planned planned = plan_with(planner_, seq_lens);
    const double ideal = ideal_us(seq_lens, config_);
    CAPTURE(config_.num_kv_heads, seq_lens.size(), ideal, planned.header.num_partials);

    const std::vector<double> even(kWorkers, 1.0);
    const double makespan = simulate_us(planned.items, seq_lens, config_, even);
    CAPTURE(makespan);
    REQUIRE(makespan <= bound_us(ideal, config_.cost));

    // Workers whose speeds differ by up to 2 %: the dynamic tail of larger shares evens that out.
    const std::uint64_t seed = 99;
    Random random(seed);
    std::vector<double> uneven(kWorkers);
    for (double& slowness : uneven) slowness = 0.98 + 0.04 * random.uniform();
    const double uneven_makespan = simulate_us(planned.items, seq_lens, config_, uneven);
    CAPTURE(seed, uneven_makespan);
    const double slowest = ideal >= kTailShareUs ? 1.0 : 1.02;
    REQUIRE(uneven_makespan <= slowest * bound_us(ideal, config_.cost));

    // Partials cost merges and memory: about one or two per worker from the even shares, the rest
    // from the tail.
    REQUIRE(planned.header.num_partials <= 6 * kWorkers);

    double& worst = ideal >= kSmallShareUs ? worst_ratio_ : worst_small_ratio_;
    worst = std::max(worst, makespan / ideal);
    most_partials_ = std::max(most_partials_, planned.header.num_partials);
  }

  ~Balance() {
    std::printf(
        "%2u KV heads: worst ratio %.4f, of small shares %.4f, up to %.1f partials per worker\n",
        config_.num_kv_heads, worst_ratio_, worst_small_ratio_,
        static_cast<double>(most_partials_) / kWorkers);
  }

 private:
  host::PlannerConfig config_;
  host::Planner planner_;
  double worst_ratio_ = 0;
  double worst_small_ratio_ = 0;
  std::uint32_t most_partials_ = 0;
};

std::vector<std::int32_t> one_long(std::int32_t length, std::size_t num_short,
                                   std::int32_t short_length) {
  std::vector<std::int32_t> lens(num_short + 1, short_length);
  lens[0] = length;
  return lens;
}

std::vector<std::int32_t> lognormal(std::uint64_t seed, double sigma, std::size_t num_requests) {
  Random random(seed);
  std::vector<std::int32_t> lens(num_requests);
  for (std::int32_t& len : lens) {
    len = static_cast<std::int32_t>(
        std::clamp(2048 * std::exp(sigma * random.normal()), 128.0, 131072.0));
  }
  return lens;
}

}  // namespace

TEST_CASE("uniform batches of 1 to 256 requests of 8k tokens") {
  for (const std::uint32_t heads : {4u, 8u, 32u}) {
    Balance balance(config_for(heads));
    for (std::size_t batch = 1; batch <= 256; ++batch) {
      balance.require_balanced(std::vector<std::int32_t>(batch, 8192));
    }
  }
}

TEST_CASE("lognormal batches of 4 to 256 requests") {
  for (const std::uint32_t heads : {4u, 8u, 32u}) {
    Balance balance(config_for(heads));
    for (const double sigma : {1.2, 1.8}) {
      for (const std::size_t batch : {4u, 8u, 16u, 32u, 64u, 128u, 256u}) {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
          CAPTURE(seed, sigma);
          balance.require_balanced(lognormal(seed, sigma, batch));
        }
      }
    }
  }
}

TEST_CASE("one long request among short ones") {
  for (const std::uint32_t heads : {4u, 8u, 32u}) {
    Balance balance(config_for(heads));
    balance.require_balanced(one_long(128 << 10, 31, 4 << 10));
    balance.require_balanced(one_long(128 << 10, 127, 2 << 10));
    balance.require_balanced(one_long(1 << 20, 255, 128));
  }
}

}  // namespace headrace::tests
