// Bad input: exit code 2, one clear line, nothing half-written.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "cli/tool.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::Outcome;
using ::testing::StartsWith;
using testing::tandem;
using testing::TemporaryFolder;

std::ptrdiff_t entries(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator());
}

struct BadInput {
  std::string arguments;
  std::string says;  // part of the message
};
void PrintTo(const BadInput& input, std::ostream* out) { *out << input.arguments; }

class Usage : public ::testing::TestWithParam<BadInput> {};

TEST_P(Usage, GivesOneLineAndCode2AndNoFile) {
  const TemporaryFolder folder;
  const bool is_run = GetParam().arguments.rfind("run ", 0) == 0;
  const std::string files = is_run ? " --json " + folder / "a.json" + " --trace " + folder / "a.trace" : "";
  const Outcome outcome = tandem(GetParam().arguments + files);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("tandem: "));
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().says));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(entries(folder), 0);
}

const std::vector<BadInput> kBadInputs = {
    {"", "subcommand"},
    {"fly", "'fly' given; a subcommand is one of list, "},
    {"chekc", "; did you mean check? (tandem --help)"},
    {"help fly", "'fly' given; a subcommand is one of list, "},
    {"help run bench", "help: 'bench' given, one subcommand is allowed"},
    {"run", "OP"},
    {"run all_redcue", "all_redcue"},
    {"bench all_redcue", "all_redcue"},
    {"run AllReduce", "OP: 'AllReduce' given; did you mean all_reduce? Allowed is one of all_reduce, "},
    {"run all_reduce --speed 9", "--speed: no such option; did you mean --seed? (tandem run --help)"},
    {"run all_reduce --size 1M", "--size: no such option; did you mean --bytes?"},
    {"run all_reduce -b 1M", "-b: no such option; did you mean --bytes?"},
    {"bench all_reduce --bytes 1K", "--bytes: no such option; did you mean -b?"},
    {"bench all_reduce --ranks=8", "--ranks: no such option; did you mean --pes?"},
    {"run all_reduce broadcast scatter", "'broadcast': not expected here"},
    // Backends.
    {"run all_reduce --backend tpu", "--backend"},
    {"run all_reduce --backend cuda --phantom", "--phantom"},  // which belongs to the simulator
    {"bench all_reduce --backend cuda --machine h200x4", "--machine"},
    {"bench all_reduce --backend cuda --phantom", "--phantom"},
    {"bench all_reduce --backend cuda --nodes 2", "--nodes"},
    {"bench all_reduce --backend cuda --vs mpi", "--vs"},
    {"bench all_reduce --backend cuda --vs nccl+cublas", "--vs"},
    {"bench all_reduce --backend cuda --calls 0", "--calls"},
    {"bench all_reduce --backend cuda --nccl libnccl.so", "--vs nccl"},
    {"bench all_reduce --graph", "--graph"},
    {"bench all_reduce --calls 5", "--calls"},
    {"bench all_reduce --late", "--late"},
    {"bench all_reduce --vs nccl", "--vs"},
    {"bench all_reduce all_redcue", "all_redcue"},
    {"bench all_reduce all_gather_gemm", "give --shape or --model"},  // before the first one runs
    {"bench all_reduce all_to_all --in-place", "--in-place"},
    {"run all_reduce --bytes 1K --report -", "'-' given"},
    {"check all_reduce --algo slow", "--algo: 'slow' given, allowed of all_reduce are copy_engine, "},
    {"check all_reduce --case slow", "--case: 'slow' given"},
    // Tuning.
    {"tune all_reduce", "--out"},
    {"tune all_gather_gemm all_reduce --out x.json", "operators and collectives are not tuned in one run"},
    {"tune all_gather_gemm --out x.json", "all_gather_gemm: give --shape or --model"},
    {"tune all_gather_gemm --shape 8x8x8 --algo sequential --out x.json", "--algo: does not apply to all_gather_gemm"},
    {"tune all_gather_gemm --shape 8x8x8 -b 1 --out x.json", "-b: does not apply"},
    {"tune all_gather_gemm --shape 8x8x8 -e 9 --out x.json", "-e: does not apply"},
    {"tune all_reduce --shape 8x8x8 --out x.json", "--shape: does not apply to all_reduce"},
    {"tune all_reduce --backend cuda --vs nccl --out x.json", "--vs"},
    {"tune all_gather_gemm --shape 8x8x8 --most 3 --out x.json", "--most"},
    {"tune all_reduce --backend cuda --most 3 --out x.json", "--most"},
    {"tune all_gather_gemm --shape 8x8x8 --backend cuda --most 0 --out x.json", "--most"},
    {"tune all_reduce --out missing/x.json", "--out: cannot write 'missing/x.json'"},
    {"tune all_reduce --algo slow --out x.json", "--algo"},
    {"run all_reduce --selection missing.json", "missing.json"},
    {"run all_reduce --selection /dev/zero", "selection table /dev/zero: cannot be read"},
    {"run all_reduce --machine /dev/zero", "--machine: '/dev/zero' given"},
    {"run all_reduce --machine missing.json", "--machine: 'missing.json' given"},
    {"run all_reduce --dtype bf17", "--dtype: 'bf17' given"},
    {"run dispatch --dtype bf17", "--dtype: 'bf17' given"},
    {"run all_gather_gemm --shape 8x8x8 --out-dtype bf17", "--out-dtype: 'bf17' given"},
    {"run all_reduce --op xor", "--op: 'xor' given"},
    {"run all_reduce --bytes 1K --report missing/x.html", "--report: cannot write 'missing/x.html'"},
    {"run all_reduce --bytes 1K --svg x --report x", "--svg: 'x' given, which another option has"},
    {"run all_reduce --bytes 1K --bytes 2K", "--bytes: given more than once"},
    {"run all_reduce --algo slow", "--algo: all_reduce has no 'slow'"},
    {"run all_gather_gemm --shape 8x8x8 --order slow", "--order: 'slow' given"},
    {"run dispatch --top-k 0", "--top-k: 0 given"},
    {"machines missing.json", "tandem: machine: 'missing.json' given"},
    {"run", "OP is required, for example all_reduce"},
    {"check all_redcue", "OP: 'all_redcue' given, allowed is one of all, "},
    // Numbers and sizes.
    {"run all_reduce --bytes -1", "--bytes"},
    {"run all_reduce --bytes 1.5M", "--bytes"},
    {"run all_reduce --bytes 1T", "--bytes"},
    {"run all_reduce --bytes 1MB", "perhaps with K, M or G (powers of 1024; KiB, MiB and GiB are the same)"},
    {"run all_reduce --bytes ''", "--bytes"},
    {"run all_reduce --bytes 99999999999999999999", "allowed is at most 65536G"},
    {"run all_reduce --bytes 99999999999999999999K", "allowed is at most 65536G"},
    {"run all_gather_gemm --shape 99999999999999999999x512x512", "may each be at most 2147483648"},
    {"run all_reduce --bytes 9999999999G", "--bytes"},
    {"run all_reduce --bytes 70000G --phantom", "--bytes: '70000G' given"},
    {"bench all_reduce -b 1K -e 70000G --phantom", "-e: '70000G' given"},
    {"run all_reduce --pes four", "--pes: 'four' given, allowed is a whole number"},
    {"run all_reduce --phantom=perhaps", "--phantom: a value given, it takes none"},
    {"run all_reduce --phantom=3", "--phantom: a value given, it takes none"},
    {"run all_reduce --in-place=false", "--in-place: a value given, it takes none"},
    {"check all_reduce --mutants=0", "--mutants: a value given, it takes none"},
    {"run all_reduce --pes 99999999999", "--pes: '99999999999' given, allowed is a whole number below 2^31"},
    {"run all_reduce --pes +1", "--pes: '+1' given, allowed is a whole number"},
    {"run all_reduce --pes 0x10", "--pes: '0x10' given, allowed is a whole number"},
    {"run all_reduce --pes ' 1'", "--pes: ' 1' given, allowed is a whole number"},
    {"run all_reduce --seed +1", "--seed: '+1' given"},
    {"run all_reduce --seed 0x10", "--seed: '0x10' given"},
    {"check all_reduce --pes 2,,3", "--pes: '2,,3' given, allowed are numbers from 1 to 32"},
    {"check all_reduce --pes 2,3,", "--pes: '2,3,' given"},
    {"check all_reduce --pes +2", "--pes: '+2' given"},
    {"check all_reduce --pes 33", "--pes: '33' given"},
    {"check all_reduce --schedules 1000001", "--schedules: 1000001 given, allowed is 1 to 1000000"},
    {"run all_reduce --pes 0", "--pes"},
    {"run all_reduce --pes -4", "--pes"},
    {"run all_reduce --pes 1025", "allowed on h200x4 is 1 to 1024, as many as one fabric is simulated for"},
    {"run all_reduce --seed -1", "--seed"},
    {"run all_reduce --seed 18446744073709551616", "--seed"},
    {"run all_reduce --seed 1x", "--seed"},
    {"run all_reduce --iterations 0", "--iterations"},
    {"run all_reduce --iterations 1000000000 --phantom", "allowed is 1 to 1000000"},
    {"run all_reduce --warmup -1", "--warmup"},
    {"run all_reduce --warmup 1000001", "allowed is 0 to 1000000"},
    {"run all_reduce --blocks -1", "--blocks: -1 given, allowed is 1 or more, or 0 for a choice by size"},
    {"run all_reduce --blocks 529", "blocks: 529 given to all_reduce, allowed are 1 to 528"},
    {"bench all_reduce -b 2K -e 1K", "-b"},
    {"bench all_reduce -f 1", "-f"},
    {"bench all_reduce -b x", "-b"},
    // Machines.
    {"machines h300x4", "h300x4"},
    {"run all_reduce --machine h300x4", "h300x4"},
    {"run all_reduce --machine /", "'/'"},
    {"run all_reduce --nodes 2", "--nodes"},
    {"run all_reduce --nodes 0", "--nodes"},
    {"run all_reduce --nodes ' '", "--nodes: ' ' given, allowed is a whole number"},
    {"run all_reduce --machine h100x8-rail --pes 12", "whole nodes"},
    {"run all_reduce --machine h100x8-rail --nodes 2 --pes 8", "--pes"},
    {"run all_reduce --machine h100x8-rail --nodes 1025", "--nodes"},
    {"run all_reduce --pes 4 --pes-per-node 3", "whole nodes"},
    {"run all_reduce --pes-per-node 0", "--pes-per-node"},
    // The operation.
    {"run all_reduce --dtype f12", "f12"},
    {"run all_reduce --op median", "median"},
    {"run all_reduce --algo slow", "slow"},
    {"run all_reduce --algo two_shot --machine h100x8-rail", "two_shot"},
    {"run all_reduce --data zeros", "--data"},
    {"run all_reduce --dtype i32 --data normal", "--data"},
    {"run all_gather --data normal", "--data"},
    {"run all_gather --op sum", "--op"},
    {"run all_reduce --root 1", "--root"},
    {"run broadcast --root 4", "--root"},
    {"run broadcast --root -1", "--root"},
    {"run all_to_all --in-place", "--in-place"},
    {"run all_reduce --shape 8x8x8", "--shape"},
    {"run all_reduce --splits 2", "--splits"},
    // Operators.
    {"run all_gather_gemm", "--shape"},
    {"run all_gather_gemm --bytes 1M", "--bytes"},
    {"run all_gather_gemm --shape 512x14336", "--shape"},
    {"run all_gather_gemm --shape 512x14336x4096x2", "--shape"},
    {"run all_gather_gemm --shape 512x-1x4096", "--shape"},
    {"run all_gather_gemm --shape 512x512x0", "--shape"},
    {"run all_gather_gemm --shape 512x0x512", "--shape"},
    {"run all_gather_gemm --shape 64x64x64 --shots 1", "--shots: does not apply"},
    {"run gemm_all_reduce --shape 64x64x64 --shots 0", "--shots: 0 given, allowed is 1 or 2"},
    {"run gemm_all_reduce --shape 64x64x64 --shots 3", "--shots: 3 given, allowed is 1 or 2"},
    {"run all_gather_gemm --shape 99999999999x512x512", "--shape"},
    {"run all_gather_gemm --shape 2147483648x2147483648x2147483648", "GiB"},
    {"run all_gather_gemm --shape 64x64x64 --model llama3-8b:o", "--shape, --model: both given"},
    {"run all_gather_gemm --model llama4", "llama3-405b:ffn_down"},
    {"run all_gather_gemm --model llama3-8b:o --m -1", "--m"},
    {"run all_gather_gemm --shape 64x64x64 --transport dma", "--transport"},
    {"run all_gather_gemm --shape 64x64x64 --direction up", "--direction"},
    {"run all_gather_gemm --shape 64x64x64 --splits 9", "--splits"},
    {"run all_gather_gemm --shape 64x64x64 --order random", "random"},
    {"run all_gather_gemm --shape 64x64x64 --activation tanh", "--activation: 'tanh' given, allowed is one of none,"},
    {"run all_gather_gemm --shape 64x64x64 --b-layout NK", "--b-layout: 'NK' given, allowed is NxK or KxN"},
    {"run all_gather_gemm --shape 64x64x64 --out-dtype f16", "out_type: f16 given, allowed for bf16 is the same"},
    {"run gemm_reduce_scatter --shape 64x64x64 --dtype fp8_e4m3 --out-dtype fp8_e4m3", "partial sums travel"},
    {"run all_gather_gemm --shape 64x64x64 --scales rows", "--scales: given with --dtype bf16, allowed for fp8_e4m3"},
    {"run all_gather_gemm --shape 64x64x64 --dtype fp8_e4m3 --scales row", "--scales: 'row' given, allowed is one of"},
    {"run all_gather_gemm --shape 64x64x64 --fast-accumulation", "--fast-accumulation: given, allowed for fp8_e4m3"},
    {"run all_reduce --fast-accumulation", "--fast-accumulation: does not apply to all_reduce"},
    {"run all_reduce --bias", "--bias: does not apply to all_reduce"},
    {"run all_reduce --activation relu", "--activation: does not apply to all_reduce"},
    {"run all_gather_gemm --shape 64x64x64 --tile 0x128", "--tile"},
    {"run all_gather_gemm --shape 64x64x64 --tile 128", "--tile"},
    {"run all_gather_gemm --shape 64x64x64 --tile 1x1", "with 8 to 4096 each"},
    {"run all_reduce --machine ''", "--machine: '' given"},
    {"run all_gather_gemm --shape 64x64x64 --communication-sms -2", "--communication-sms"},
    {"run all_gather_gemm --shape 64x64x64 --communication-sms 132", "--communication-sms: 132 given"},
    {"run all_gather_gemm --shape 64x64x64 --dtype i32", "i32"},
    {"run all_gather_gemm --shape 64x64x64 --algo ring", "--algo"},
    {"run all_gather_gemm --shape 64x64x64 --compute-only --decomposed", "one of them"},
};
INSTANTIATE_TEST_SUITE_P(All, Usage, ::testing::ValuesIn(kBadInputs));

TEST(UsageOfFiles, AMachineFileWithWrongJsonIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "machine.json";
  std::ofstream(path) << "{\"name\": \"mine\",\n  oops\n}";
  for (const std::string& command : {"machines " + path, "run all_reduce --machine " + path}) {
    const Outcome outcome = tandem(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr(path));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(UsageOfFiles, AFileThatCannotBeWrittenIsRefusedBeforeAnythingElse) {
  const TemporaryFolder folder;
  for (const std::string option : {"--json", "--trace", "--report", "--svg"}) {
    // A second file that could be written must not appear, and the run, which would fail for its size, not begin.
    const std::string good = option == "--json" ? "--svg" : "--json";
    const Outcome outcome = tandem("run all_reduce --bytes 60000G --phantom " + option + " " + folder / "missing/file" +
                                   " " + good + " " + folder / "good");
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_EQ(outcome.out, "") << option;
    EXPECT_THAT(outcome.err, HasSubstr("missing/file"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(entries(folder), 0) << option;
  }
}

TEST(UsageOfFiles, OneFileForTwoThingsIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  EXPECT_EQ(tandem("run all_reduce --trace " + path + " --report " + path).code, 2);
  EXPECT_EQ(tandem("run all_reduce --json " + path + " --report " + path).code, 2);
  EXPECT_EQ(entries(folder), 0);
}

TEST(UsageOfFiles, AFailedRunHasCode3AndLeavesNoFile) {
  const TemporaryFolder folder;
  const Outcome outcome = tandem("run all_reduce --bytes 60000G --phantom --json " + folder / "a.json");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, StartsWith("tandem: "));
  EXPECT_EQ(entries(folder), 0);
}

TEST(UsageOfHelp, HasACommandAndExamples) {
  EXPECT_EQ(tandem("help").out, tandem("--help").out);
  EXPECT_EQ(tandem("help launch").out, tandem("launch --help").out);
  EXPECT_THAT(tandem("help launch").out, HasSubstr("Usage: tandem launch"));
  for (const std::string command : {"machines", "run", "bench", "check", "tune", "doctor", "calibrate"}) {
    const Outcome outcome = tandem("help " + command);
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_EQ(outcome.out, tandem(command + " --help").out);
    EXPECT_THAT(outcome.out, HasSubstr("Examples:\n  tandem " + command)) << command;
  }
}

TEST(UsageOfHelp, IsPrintedOnRequest) {
  const Outcome outcome = tandem("run --help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* const option : {"--machine", "--shape", "--bytes", "--phantom", "--json", "--report", "--seed"})
    EXPECT_THAT(outcome.out, HasSubstr(option));
}

/// -b, -e and --algo of operators are those of `bench`.
TEST(UsageOfHelp, OfTuneSaysWhatOperatorsDoNotTake) {
  const std::string help = tandem("tune --help").out;
  EXPECT_THAT(help, HasSubstr("collectives: only this algorithm (default: all)"));
  EXPECT_THAT(help, HasSubstr("collectives: first size, with K, M or G (default: 1K)"));
  EXPECT_THAT(help, HasSubstr("collectives: last size (default: 16M)"));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("number of rows")));
  EXPECT_THAT(tandem("bench --help").out, HasSubstr("operators: first number of rows (default: 512)"));
}

}  // namespace
}  // namespace tandem::cli
