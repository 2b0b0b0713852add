// What --help says beside the options.
#pragma once

#include <string>

#include "bench/profiles.h"

namespace headrace::bench {

inline constexpr const char* kDescription =
    "Measures decode attention over a paged KV cache: time, GB/s of K and V, per cent of the peak\n"
    "copy rate (bytes read + bytes written over time), and per cent of a copy that moves as many\n"
    "bytes. The caches are cold: runs rotate over KV sets that together exceed the last-level\n"
    "cache. Results are checked against float64; a wrong one ends the program with status 1.";

inline constexpr const char* kGridDescription = "measures the published problem; can be resumed";
inline constexpr const char* kRoofDescription =
    "measures what the memory can do, without arithmetic";
inline constexpr const char* kTableDescription = "prints results as Markdown";

inline std::string run_footer() {
  return "Profiles (\"4k\" is 4096):\n" + profiles_help() +
         "\nExamples:\n"
         "  headrace-bench\n"
         "      a lognormal batch, a uniform one and one long request among short ones,\n"
         "      for bf16 and fp8 caches\n"
         "  headrace-bench --profile uniform:8k --batch 1,4,16 --dtype fp8 --page-size 16,64\n"
         "      six rows: 1, 4 and 16 requests of 8192 tokens, each with both page sizes\n"
         "  headrace-bench --profile lognormal:2k,1.2 bimodal:512,16k,0.1 --seed 7 --json -\n"
         "      two skewed batches, the result as JSON on stdout\n"
         "  headrace-bench --device cpu --kv-heads 4 --query-heads 28 --workers 1\n"
         "      one CPU thread, a group of 7\n"
         "  headrace-bench --launch plain,dependent --batch 8\n"
         "      steps that start when the one before has ended, and steps that start while it\n"
         "      still runs and read all but the newest token of each request early\n"
         "  headrace-bench --profile uniform:8k --batch 8 --dtype bf16 --timeline trace.json\n"
         "      one row, and what every worker did in two of its steps\n"
         "  headrace-bench grid --json grid.json\n"
         "      the published problem; the same command goes on after an interruption\n"
         "  headrace-bench table grid.json\n"
         "      its results as Markdown\n";
}

inline constexpr const char* kGridFooter =
    "The published problem: batches of 1 to 256 requests of 1k to 128k tokens, uneven batches and\n"
    "mixes of lengths; 32, 8 and 4 KV heads (32 query heads of 128 elements), pages of 16 and 64\n"
    "tokens, bf16 and fp8 caches; on a GPU with plain and with dependent launches. The options\n"
    "restrict it; --layout adds hnd. Caches above 80 GB and what does not fit into memory are\n"
    "skipped. It ends with a summary per launch and size: rows, lowest and median per cent of the\n"
    "peak copy rate.\n"
    "\n"
    "Examples:\n"
    "  headrace-bench grid --json grid.json\n"
    "      everything; the file is written after every row, and the same command goes on where it\n"
    "      was stopped, if machine, commit and seed are the same\n"
    "  headrace-bench grid --kv-heads 8 --dtype fp8 --max-mb 600\n"
    "      what is small\n"
    "  headrace-bench grid --layout nhd,hnd --batch 32\n"
    "      both layouts\n";

inline constexpr const char* kRoofFooter =
    "From 1 MiB to 4 GiB: the time of a copy that moves as many bytes (half read, half written), "
    "of\n"
    "a read, and on a GPU of reads of 4 KB and 2 KB pages in random order into shared memory; all\n"
    "cold, the best of several ways.\n"
    "\n"
    "Example:\n"
    "  headrace-bench roof --min-mb 16 --max-mb 600 --json roof.json\n";

inline constexpr const char* kTableFooter =
    "Per way to launch: microseconds (per cent of peak copy) per batch, and a summary per size. "
    "Where\n"
    "several files have the same row, the last one counts.\n"
    "\n"
    "Examples:\n"
    "  headrace-bench table grid.json >> RESULTS.md\n"
    "  headrace-bench table --brief nhd.json hnd.json\n";

}  // namespace headrace::bench
