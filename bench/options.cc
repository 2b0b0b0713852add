#include "bench/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "bench/names.h"

namespace headrace::bench {
namespace {

const char* const kDescription =
    "Measures decode attention over a paged KV cache: time, GB/s of K and V, and per cent of a\n"
    "plain copy (bytes read + bytes written over time) measured in between by as many threads;\n"
    "\"read\" is how fast these threads read without computing anything.\n"
    "The caches are cold: runs rotate over KV sets that together exceed the last-level cache.\n"
    "Sampled results are checked against float64; a wrong one ends the program with status 1.";

std::string footer() {
  return "Profiles (\"4k\" is 4096):\n" + profiles_help() +
         "\nExamples:\n"
         "  headrace-bench\n"
         "      a lognormal batch, a uniform one and one long request among short ones,\n"
         "      for bf16 and fp8 caches\n"
         "  headrace-bench --profile uniform:8k --batch 1,4,16 --dtype fp8 --page-size 64\n"
         "      three rows: 1, 4 and 16 requests of 8192 tokens\n"
         "  headrace-bench --profile lognormal:2k,1.2 bimodal:512,16k,0.1 --seed 7 --json -\n"
         "      two skewed batches, the result as JSON on stdout\n"
         "  headrace-bench --profile one-long:128k,31,4k --kv-heads 4 --query-heads 28 --workers "
         "1\n"
         "      one worker, a group of 7\n";
}

// CLI11's own validators write their ranges into the help and their maps into the messages.
template <typename Enum>
CLI::Validator one_of(const std::map<std::string, Enum>& names) {
  const auto to_value = [&names](std::string& text) -> std::string {
    const auto named = names.find(CLI::detail::to_lower(text));
    if (named != names.end()) {
      text = std::to_string(named->second);
      return "";
    }
    std::string known;
    for (const auto& [name, value] : names) known += (known.empty() ? "" : ", ") + name;
    return fmt::format("needs one of {}; given '{}'", known, text);
  };
  return CLI::Validator(to_value, "");
}

CLI::Validator from_to(double low, double high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return "";
    return fmt::format("needs a number from {} to {}, given '{}'", low, high, text);
  };
  return CLI::Validator(check, "");
}

void check_together(const Options& options) {
  if (options.num_qo_heads % options.num_kv_heads != 0) {
    throw CLI::ValidationError("--query-heads",
                               fmt::format("needs a multiple of the {} KV heads, given {}",
                                           options.num_kv_heads, options.num_qo_heads));
  }
}

}  // namespace

std::optional<int> parse_options(int argc, char** argv, Options& options) {
  CLI::App app(kDescription, "headrace-bench");
  app.footer(footer());
  app.get_formatter()->column_width(32);

  std::vector<std::string> profiles{"lognormal:1k,1", "uniform:2k", "one-long:32k,31,1k"};
  options.batches = {32};
  options.cache_dtypes = {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3};
  const CLI::Validator positive = from_to(1, std::numeric_limits<std::int32_t>::max());

  app.add_option("--device", options.device, "cpu; cuda-bench measures GPUs")
      ->transform(one_of(devices()))
      ->type_name("NAME");
  app.add_option("--workers", options.workers, "CPU threads; 0: one per processor")
      ->check(from_to(0, 4096))
      ->capture_default_str()
      ->type_name("N");

  app.add_option("--profile", profiles, "lengths of the requests, see below; one row each")
      ->group("Batch")
      ->type_name("PROFILE");
  app.add_option("--batch", options.batches, "requests, e.g. 1,8,64; one row each")
      ->delimiter(',')
      ->check(from_to(1, 65536))
      ->capture_default_str()
      ->group("Batch")
      ->type_name("N[,N]");
  app.add_option("--seed", options.seed, "for lengths, page order and values")
      ->capture_default_str()
      ->group("Batch")
      ->type_name("N");

  app.add_option("--kv-heads", options.num_kv_heads, "KV heads, a divisor of the query heads")
      ->check(positive)
      ->capture_default_str()
      ->group("Attention")
      ->type_name("N");
  app.add_option("--query-heads", options.num_qo_heads, "query heads")
      ->check(positive)
      ->capture_default_str()
      ->group("Attention")
      ->type_name("N");
  app.add_option("--head-dim", options.head_dim, "elements per head")
      ->check(positive)
      ->capture_default_str()
      ->group("Attention")
      ->type_name("N");
  app.add_option("--dtype", options.cache_dtypes,
                 "cache: bf16, fp16, f32, fp8; one row each. Queries and\n"
                 "outputs are bf16")
      ->delimiter(',')
      ->transform(one_of(dtypes()))
      ->group("Attention")
      ->type_name("NAME[,NAME]");
  app.add_option("--page-size", options.page_size, "tokens per page")
      ->check(positive)
      ->capture_default_str()
      ->group("Attention")
      ->type_name("N");
  app.add_option("--layout", options.layout, "page: nhd (token, head) or hnd (head, token)")
      ->transform(one_of(layouts()))
      ->group("Attention")
      ->type_name("NAME");
  app.add_flag_callback(
         "--no-head-scales", [&] { options.head_scales = false; },
         "fp8 without per-head K and V scales")
      ->group("Attention");

  app.add_option("--repetitions", options.min_repetitions, "runs per row, at least")
      ->check(from_to(1, 1000000))
      ->capture_default_str()
      ->group("Measurement")
      ->type_name("N");
  app.add_option("--min-time", options.min_time_s, "seconds per row, at least")
      ->check(from_to(0.0, 3600.0))
      ->capture_default_str()
      ->group("Measurement")
      ->type_name("SECONDS");
  app.add_option("--noise", options.noise_pct,
                 "go on, up to 4 x the minima, until the standard error of\n"
                 "the median is below this")
      ->check(from_to(0.0, 100.0))
      ->capture_default_str()
      ->group("Measurement")
      ->type_name("PERCENT");
  app.add_option("--working-set", options.working_set_mib,
                 "least size of all KV sets, and of a copy buffer; 0: four\n"
                 "times the last-level cache")
      ->check(from_to(0, 1 << 20))
      ->capture_default_str()
      ->group("Measurement")
      ->type_name("MIB");
  app.add_option("--json", options.json_path, "write the result here; - is stdout, without table")
      ->type_name("PATH");

  try {
    app.parse(argc, argv);
    for (const std::string& profile : profiles) options.profiles.push_back(Profile::parse(profile));
    check_together(options);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const std::exception& error) {
    fmt::print(stderr, "headrace-bench: {}\nTry headrace-bench --help.\n", error.what());
    return kBadOptions;
  }
  return std::nullopt;
}

}  // namespace headrace::bench
