#include "bench/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "bench/help_texts.h"
#include "bench/names.h"
#include "bench/validators.h"

namespace headrace::bench {
namespace {

// Options that several commands have. The strings that become `options` live as long as the parser.
class Parser {
 public:
  explicit Parser(Options& options) : options_(options) {
    app_.footer(run_footer());
    app_.get_formatter()->column_width(32);
    add_device(app_);
    add_run();
    add_batch(app_, "requests, e.g. 1,8,64; one row each");
    add_attention(app_,
                  "cache: bf16, fp16, f32, fp8; one row each. Queries and\n"
                  "outputs are bf16");
    add_query_heads();
    add_launch(app_,
               "GPU: how steps are started, plain (default) or dependent;\n"
               "one row each");
    add_measurement(app_);
    add_json(app_, "write the result here; - is stdout, without table");
    app_.add_option("--timeline", options_.timeline_path,
                    "write when every item of two steps ran where, as a trace\n"
                    "for Perfetto (ui.perfetto.dev); needs a single row")
        ->type_name("PATH");
    app_.require_subcommand(0, 1);

    CLI::App& grid = add_command(Command::kGrid, "grid", kGridDescription, kGridFooter);
    add_device(grid);
    add_batch(grid, "only these numbers of requests, e.g. 1,8");
    add_attention(grid, "cache: bf16, fp8; one row each");
    add_launch(grid, "only plain or dependent; by default both on a GPU");
    add_size(grid);
    add_measurement(grid);
    add_json(grid,
             "keep the results here and do not measure again what it\n"
             "holds; - is stdout, without table");

    CLI::App& roof = add_command(Command::kRoof, "roof", kRoofDescription, kRoofFooter);
    add_device(roof);
    add_size(roof);
    add_working_set(roof);
    add_json(roof, "write the result here; - is stdout, without table");

    CLI::App& table = add_command(Command::kTable, "table", kTableDescription, kTableFooter);
    table.add_option("FILE", options_.files, "results as JSON")->required();
    table.add_flag("--brief", options_.brief, "only the summary");
  }

  // Throws what CLI11 or Profile::parse() throw.
  void parse(int argc, char** argv) {
    app_.parse(argc, argv);
    if (options_.command != Command::kRun) {
      require_no_options_before_command();
      return;
    }
    for (const std::string& text : profiles_) options_.profiles.push_back(Profile::parse(text));
    set_default(options_.batches, {32});
    set_default(options_.kv_heads, {8});
    set_default(options_.page_sizes, {16});
    set_default(options_.cache_dtypes, {HEADRACE_BFLOAT16, HEADRACE_FLOAT8_E4M3});
    for (const std::int32_t kv_heads : options_.kv_heads) {
      if (options_.num_qo_heads % kv_heads == 0) continue;
      throw CLI::ValidationError(
          "--query-heads", fmt::format("needs a multiple of the {} KV heads, given {}", kv_heads,
                                       options_.num_qo_heads));
    }
  }

  int exit(const CLI::Success& success) const { return app_.exit(success); }

 private:
  template <typename T>
  static void set_default(std::vector<T>& values, std::vector<T> defaults) {
    if (values.empty()) values = std::move(defaults);
  }

  // They would go unheard.
  void require_no_options_before_command() const {
    for (const CLI::Option* option : app_.get_options()) {
      if (option->count() == 0) continue;
      throw CLI::ValidationError(option->get_name(), "options of a command follow its name");
    }
  }

  CLI::App& add_command(Command command, const char* name, const char* description,
                        const char* footer) {
    CLI::App& app = *app_.add_subcommand(name, description);
    app.get_formatter()->column_width(32);
    app.footer(footer);
    app.callback([this, command] { options_.command = command; });
    return app;
  }

  void add_device(CLI::App& app) {
    app.add_option("--device", options_.device, "cpu or cuda; by default a GPU where there is one")
        ->transform(one_of(devices()))
        ->type_name("NAME");
    app.add_option("--workers", options_.workers, "CPU threads or GPU blocks; 0: one per processor")
        ->check(from_to(0, 4096))
        ->capture_default_str()
        ->type_name("N");
  }

  void add_run() {
    app_.add_option("--profile", profiles_, "lengths of the requests, see below; one row each")
        ->group("Batch")
        ->type_name("PROFILE");
  }

  void add_batch(CLI::App& app, const char* help) {
    app.add_option("--batch", options_.batches, help)
        ->delimiter(',')
        ->check(from_to(1, 65536))
        ->group("Batch")
        ->type_name("N[,N]");
    app.add_option("--seed", options_.seed, "for lengths, page order and values")
        ->capture_default_str()
        ->group("Batch")
        ->type_name("N");
  }

  void add_attention(CLI::App& app, const char* dtype_help) {
    app.add_option("--kv-heads", options_.kv_heads, "KV heads, e.g. 8,4; one row each")
        ->delimiter(',')
        ->check(positive_)
        ->group("Attention")
        ->type_name("N[,N]");
    app.add_option("--page-size", options_.page_sizes, "tokens per page, e.g. 16,64; one row each")
        ->delimiter(',')
        ->check(positive_)
        ->group("Attention")
        ->type_name("N[,N]");
    app.add_option("--dtype", options_.cache_dtypes, dtype_help)
        ->delimiter(',')
        ->transform(one_of(dtypes()))
        ->group("Attention")
        ->type_name("NAME[,NAME]");
    app.add_option("--layout", options_.layouts,
                   "page: nhd (token, head; default) or hnd (head, token);\n"
                   "one row each")
        ->delimiter(',')
        ->transform(one_of(layouts()))
        ->group("Attention")
        ->type_name("NAME[,NAME]");
  }

  void add_query_heads() {
    app_.add_option("--query-heads", options_.num_qo_heads, "query heads, a multiple of KV heads")
        ->check(positive_)
        ->capture_default_str()
        ->group("Attention")
        ->type_name("N");
    app_.add_option("--head-dim", options_.head_dim, "elements per head")
        ->check(positive_)
        ->capture_default_str()
        ->group("Attention")
        ->type_name("N");
    app_.add_flag_callback(
            "--no-head-scales", [this] { options_.head_scales = false; },
            "fp8 without per-head K and V scales")
        ->group("Attention");
  }

  void add_launch(CLI::App& app, const char* help) {
    app.add_option("--launch", options_.launches, help)
        ->delimiter(',')
        ->transform(one_of(launch_kinds()))
        ->group("Launch")
        ->type_name("NAME[,NAME]");
    app.add_option("--fresh-tokens", options_.fresh_tokens,
                   "dependent: newest tokens of a request that are not read\n"
                   "before the step before has ended; 1 by default, -1: all")
        ->check(from_to(-1, std::numeric_limits<std::int32_t>::max()))
        ->group("Launch")
        ->type_name("N");
  }

  void add_size(CLI::App& app) {
    constexpr double kMaxMb = 1e9;
    app.add_option("--min-mb", options_.min_mb, "only from so many MB (10^6 bytes) up")
        ->check(from_to(0.0, kMaxMb))
        ->group("Size")
        ->type_name("MB");
    app.add_option("--max-mb", options_.max_mb, "only up to so many MB")
        ->check(from_to(0.0, kMaxMb))
        ->group("Size")
        ->type_name("MB");
  }

  void add_working_set(CLI::App& app) {
    app.add_option("--working-set", options_.working_set_mib,
                   "what is read at least before anything is read again; 0:\n"
                   "four times the last-level cache")
        ->check(from_to(0, 1 << 20))
        ->capture_default_str()
        ->group("Measurement")
        ->type_name("MIB");
  }

  void add_measurement(CLI::App& app) {
    app.add_option("--repetitions", options_.min_repetitions,
                   "runs per row (GPU: replays of a graph of runs), at least")
        ->check(from_to(1, 1000000))
        ->capture_default_str()
        ->group("Measurement")
        ->type_name("N");
    app.add_option("--min-time", options_.min_time_s,
                   "seconds per row, at least; by default 1 on a CPU, 0.2 on a\n"
                   "GPU")
        ->check(from_to(0.0, 3600.0))
        ->group("Measurement")
        ->type_name("SECONDS");
    app.add_option("--noise", options_.noise_pct,
                   "go on, up to 4 x the minima, until the standard error of\n"
                   "the median is below this")
        ->check(from_to(0.0, 100.0))
        ->capture_default_str()
        ->group("Measurement")
        ->type_name("PERCENT");
    add_working_set(app);
  }

  void add_json(CLI::App& app, const char* help) {
    app.add_option("--json", options_.json_path, help)->type_name("PATH");
  }

  Options& options_;
  CLI::Validator positive_ = from_to(1, std::numeric_limits<std::int32_t>::max());
  std::vector<std::string> profiles_{"lognormal:1k,1", "uniform:2k", "one-long:32k,31,1k"};
  CLI::App app_{kDescription, "headrace-bench"};
};

}  // namespace

void print_bad_options(const char* message) {
  fmt::print(stderr, "headrace-bench: {}\nTry headrace-bench --help.\n", message);
}

std::optional<int> parse_options(int argc, char** argv, Options& options) {
  Parser parser(options);
  try {
    parser.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return parser.exit(success);
  } catch (const std::exception& error) {
    print_bad_options(error.what());
    return kBadOptions;
  }
  return std::nullopt;
}

}  // namespace headrace::bench
