#include "tools/tandem/options/examples.h"

#include <CLI/CLI.hpp>

namespace tandem::cli {
namespace {

struct Example {
  const char* command;
  const char* lines;
};

constexpr Example kExamples[] = {
    {"machines", "  tandem machines h200x4\n"},
    {"run",
     "  tandem run all_reduce --bytes 64M\n"
     "  tandem run all_reduce --machine h100x8-rail --nodes 4 --bytes 64M --phantom\n"
     "  tandem run all_gather_gemm --model llama3-8b:ffn_up --m 512 --report overlap.html\n"},
    {"bench",
     "  tandem bench reduce_scatter -b 1K -e 64M -f 4 --dtype bf16\n"
     "  tandem bench all_gather_gemm --shape 8192x28672x4096 -b 512 --phantom\n"
     "  tandem bench all_reduce --backend cuda --graph --vs nccl\n"},
    {"check",
     "  tandem check all_reduce --pes 2,3\n"
     "  tandem check all --schedules 50\n"
     "  tandem check all_gather --algo ring --mutants\n"},
    {"tune",
     "  tandem tune all_reduce --pes 4 -b 1K -e 64M -f 4 --out mine.json\n"
     "  tandem tune gemm_reduce_scatter --shape 4096x8192x28672 --out cache.json\n"},
    {"doctor", "  tandem doctor\n  tandem doctor --json -\n  tandem doctor --process 4711\n"},
    {"calibrate", "  tandem calibrate --out mine.json\n"},
};

}  // namespace

void add_examples(CLI::App& app) {
  for (const Example& example : kExamples)
    app.get_subcommand(example.command)->footer(std::string("\nExamples:\n") + example.lines);
  app.footer(
      "\nExamples:\n"
      "  tandem list\n"
      "  tandem run all_reduce --bytes 64M\n"
      "  tandem help run\n");
}

}  // namespace tandem::cli
