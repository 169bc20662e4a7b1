// Output of `run`: JSON, table, files.
#include <gmock/gmock.h>

#include <set>
#include <vector>

#include "cli/tool.h"
#include "tandem/advanced/collective_traits.h"

namespace tandem::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::read_file;
using testing::run_json;
using testing::tandem;
using testing::TemporaryFolder;

std::vector<std::string> keys(const std::string& text) {
  std::vector<std::string> found;
  const auto json = nlohmann::ordered_json::parse(text);
  for (const auto& item : json.items()) found.push_back(item.key());
  return found;
}

TEST(Run, JsonHasTheDocumentedKeysInOrder) {
  const std::vector<std::string> expected = {
      "op",         "backend",       "predicted",     "machine",         "pes",
      "shape",      "bytes",         "dtype",         "algorithm",       "seed",
      "phantom",    "correct",       "max_rel_error", "wrong",           "time_us",
      "beyond_fit", "sequential_us", "ideal_us",      "overlap_percent", "trace_hash"};
  EXPECT_EQ(keys(tandem("run all_reduce --json -").out), expected);
  EXPECT_EQ(keys(tandem("run all_gather_gemm --shape 64x64x64 --json -").out), expected);
}

// Address spaces of sanitizers have no room for a limit.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Run, TakesLessWhereAddressesAreLimited) {
  const TemporaryFolder folder;
  const std::string run = std::string("ulimit -v 1000000; '") + TANDEM_CLI_PATH + "' run all_reduce --bytes 1K";
  EXPECT_EQ(std::system((run + " >'" + folder / "out" + "' 2>'" + folder / "err" + "'").c_str()), 0)
      << read_file(folder / "err");
}
#endif

TEST(Run, JsonOfACollective) {
  const auto json = run_json("all_reduce --bytes 10K --dtype bf16 --algo ring --seed 5");
  EXPECT_EQ(json["op"], "all_reduce");
  EXPECT_EQ(json["backend"], "sim");
  EXPECT_EQ(json["machine"], "h200x4");
  EXPECT_EQ(json["pes"], 4);
  EXPECT_EQ(json["bytes"], 10240);
  EXPECT_EQ(json["dtype"], "bf16");
  EXPECT_EQ(json["algorithm"], "ring");
  EXPECT_EQ(json["seed"], 5);
  EXPECT_EQ(json["phantom"], false);
  EXPECT_EQ(json["correct"], true);
  EXPECT_EQ(json["max_rel_error"], 0.0);
  EXPECT_EQ(json["wrong"], 0);
  EXPECT_GT(json["time_us"], 0.0);
  for (const char* const key : {"shape", "sequential_us", "ideal_us", "overlap_percent"})
    EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_EQ(json["trace_hash"].get<std::string>().size(), 16U);
}

TEST(Run, JsonOfAnOperator) {
  const auto json = run_json("all_gather_gemm --shape 300x500x256");
  EXPECT_EQ(json["shape"], "300x500x256");
  EXPECT_TRUE(json["bytes"].is_null());
  EXPECT_EQ(json["dtype"], "bf16");
  EXPECT_EQ(json["correct"], true);
  EXPECT_GT(json["max_rel_error"], 0.0);
  EXPECT_LT(json["max_rel_error"], 0.01);
  const double time = json["time_us"], sequential = json["sequential_us"], ideal = json["ideal_us"];
  EXPECT_GT(ideal, 0);
  EXPECT_GT(sequential, ideal);
  EXPECT_NEAR(json["overlap_percent"].get<double>(), 100 * (sequential - time) / (sequential - ideal), 1e-9);
}

TEST(Run, OperatorsAreCheckedWithWhatIsComputedBesideTheProduct) {
  struct Case {
    std::string options, extras;
  };
  for (const std::string op : {"all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce"})
    for (const auto& [options, extras] : std::vector<Case>{
             {"--bias --activation gelu --b-layout KxN", "KxN, bias, gelu"},
             {"--activation silu --dtype f32 --algo sequential", "silu"},
             {"--dtype fp8_e4m3 --scales rows+columns --bias --activation relu --out-dtype f16",
              "to f16, scales of rows and columns, bias, relu"},
             {"--dtype fp8_e4m3 --scales blocks --bias", "scales of blocks, bias"},
             {"--dtype fp8_e4m3 --scales rows --fast-accumulation", "scales of rows, fast accumulation"},
             {"--dtype fp8_e4m3 --scales tensors --b-layout KxN --algo decomposed", "KxN, scales of tensors"},
         }) {
      const auto json = run_json(op + " --shape 300x520x256 --pes 3 " + options);
      EXPECT_EQ(json["correct"], true) << op << " " << options;
      EXPECT_GT(json["max_rel_error"], 0.0) << op << " " << options;
      EXPECT_EQ(json["extras"], extras) << op;
    }
}

TEST(Run, TheAlgorithmOfAnOperatorIsThatOfItsRows) {
  EXPECT_EQ(run_json("gemm_all_reduce --shape 4x512x512")["algorithm"], "packets");
  EXPECT_EQ(run_json("gemm_all_reduce --shape 300x512x512 --shots 2")["algorithm"], "sequential");
}

TEST(Run, PhantomChecksNothingAndTakesAsLong) {
  for (const std::string what : {"all_reduce --bytes 64K", "gemm_reduce_scatter --shape 300x500x256",
                                 "gemm_all_reduce --shape 300x500x256 --shots 2"}) {
    const auto real = run_json(what);
    const auto phantom = run_json(what + " --phantom");
    EXPECT_EQ(phantom["phantom"], true);
    for (const char* const key : {"correct", "max_rel_error", "wrong"}) EXPECT_TRUE(phantom[key].is_null()) << key;
    // Data on its way are events, whose numbers break ties: the order of simultaneous ones may differ.
    for (const char* const key : {"time_us", "sequential_us", "ideal_us"})
      if (real[key].is_null())
        EXPECT_TRUE(phantom[key].is_null()) << what << key;
      else
        EXPECT_NEAR(phantom[key].get<double>(), real[key].get<double>(), 1e-3 * real[key].get<double>()) << what << key;
  }
}

TEST(Run, TheLargeLayerOverlaps) {
  const auto json = run_json("all_gather_gemm --model llama3-8b:ffn_up --phantom");
  EXPECT_EQ(json["shape"], "8192x28672x4096");
  EXPECT_LT(json["time_us"], json["sequential_us"]);
  EXPECT_GE(json["time_us"], json["ideal_us"]);
}

TEST(Run, ModelRowsCanBeChanged) {
  EXPECT_EQ(run_json("all_gather_gemm --model tutorial07 --m 96 --phantom")["shape"], "96x49152x12288");
}

TEST(Run, BytesAreRoundedDownToWholeElementsOfEachPe) {
  EXPECT_EQ(run_json("all_reduce --bytes 1003 --dtype f32")["bytes"], 1000);
  EXPECT_EQ(run_json("all_gather --bytes 1003 --dtype f32")["bytes"], 992);  // 62 elements of each of 4
  EXPECT_EQ(run_json("reduce_scatter --bytes 1003 --dtype i8 --pes 3")["bytes"], 1002);
  EXPECT_EQ(run_json("all_to_all --bytes 63 --dtype f64 --pes 2")["bytes"], 48);
  EXPECT_EQ(run_json("send_recv --bytes 63 --dtype f64 --pes 2")["bytes"], 56);
}

TEST(Run, RefusesSizesWithoutAnElement) {
  EXPECT_THAT(tandem("run all_reduce --bytes 3").err,
              HasSubstr("--bytes: 3 given, allowed is 0 or at least 4, one f32 element"));
  const auto host = tandem("run all_gather --bytes 7 --dtype bf16 --backend host --pes 4");
  EXPECT_THAT(host.err, HasSubstr("--bytes: 7 given, allowed is 0 or at least 8, one bf16 element of each PE"));
  EXPECT_EQ(host.code, 2);
}

TEST(Run, ReportsThatProcessesOfAJobSimulateAllPes) {
  ::setenv("RANK", "0", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  const auto first = tandem("run all_reduce --bytes 1K");
  ::setenv("RANK", "1", 1);
  const auto second = tandem("run all_reduce --bytes 1K");
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
  EXPECT_THAT(first.err, HasSubstr("each of the 2 processes of this job simulates all PEs by itself; --backend host"));
  EXPECT_EQ(first.code, 0);
  EXPECT_EQ(second.err, "");
}

TEST(Run, NoElementsAreRight) {
  for (const Collective collective : all_collectives()) {
    const auto json = run_json(std::string(name(collective)) + " --bytes 0");
    EXPECT_EQ(json["bytes"], 0);
    EXPECT_EQ(json["correct"], true);
    EXPECT_EQ(json["wrong"], 0);
  }
  EXPECT_EQ(run_json("all_gather_gemm --shape 0x64x64")["correct"], true);
}

TEST(Run, TheSameSeedGivesTheSameTraceAndAnotherSeedAnother) {
  for (const std::string what : {"all_reduce --algo ring --bytes 64K", "all_gather_gemm --shape 256x512x128"}) {
    std::set<std::string> hashes;
    for (const std::string seed : {"1", "2", "3"}) {
      const auto first = run_json(what + " --seed " + seed);
      EXPECT_EQ(first, run_json(what + " --seed " + seed));
      EXPECT_EQ(first["correct"], true);
      hashes.insert(first["trace_hash"]);
    }
    EXPECT_EQ(hashes.size(), 3U) << what;
  }
}

TEST(Run, EveryCollectiveIsRightOutOfPlaceAndInPlace) {
  for (const Collective collective : all_collectives()) {
    const std::string op = name(collective);
    for (const std::string pes : {"1", "3", "4"}) {
      EXPECT_EQ(run_json(op + " --bytes 5000 --pes " + pes)["correct"], true) << op << " on " << pes;
      if (!traits(collective).has_place) continue;
      EXPECT_EQ(run_json(op + " --in-place --bytes 5000 --iterations 2 --pes " + pes)["correct"], true)
          << op << " on " << pes;
    }
  }
}

TEST(Run, ReductionsAreRightInEveryTypeWithEveryOperation) {
  for (const DType type : kDTypes)
    for (const ReduceOp op : kReduceOps)
      EXPECT_EQ(run_json(std::string("reduce_scatter --bytes 2000 --pes 5 --dtype ") + name(type) + " --op " +
                         name(op))["correct"],
                true)
          << name(type) << ' ' << name(op);
}

TEST(Run, NormalDataIsWithinTheTolerance) {
  for (const std::string type : {"f32", "bf16", "f16", "fp8_e4m3"}) {
    const auto json = run_json("all_reduce --data normal --bytes 20K --dtype " + type);
    EXPECT_EQ(json["correct"], true) << type;
    EXPECT_GT(json["max_rel_error"], 0.0) << type;
  }
}

TEST(Run, NodesOfAMachineAndVirtualNodes) {
  EXPECT_EQ(run_json("all_reduce --machine h100x8-rail --nodes 3 --bytes 8K")["pes"], 24);
  EXPECT_EQ(run_json("all_reduce --machine h100x8-rail --bytes 8K")["pes"], 16);
  EXPECT_EQ(run_json("all_gather --pes 6 --pes-per-node 3 --bytes 8K")["correct"], true);
  EXPECT_EQ(run_json("all_gather --nodes 3 --pes-per-node 2 --bytes 8K")["pes"], 6);
}

/// As many as `tandem machines` names.
TEST(Run, AllNodesOfAMachineHaveAddresses) {
  EXPECT_EQ(run_json("all_reduce --machine h100x8-rail --nodes 1024 --bytes 1K --phantom")["pes"], 8192);
}

TEST(Run, FormsOfAnOperator) {
  const std::string what = "all_gather_gemm --shape 256x512x128 ";
  const auto sequential = run_json(what + "--algo sequential");
  EXPECT_EQ(sequential["sequential_us"], sequential["time_us"]);
  EXPECT_EQ(sequential["overlap_percent"], 0.0);
  EXPECT_EQ(run_json(what + "--decomposed")["correct"], true);
  const auto compute = run_json(what + "--compute-only");
  const auto communication = run_json(what + "--communication-only");
  EXPECT_TRUE(compute["correct"].is_null());  // a part has no meaningful result
  EXPECT_TRUE(compute["sequential_us"].is_null());
  EXPECT_EQ(sequential["ideal_us"], std::max(compute["time_us"].get<double>(), communication["time_us"].get<double>()));
}

TEST(Run, OperatorOptionsReachTheOperator) {
  std::set<std::string> hashes;
  for (const std::string options : {"", "--transport ce", "--direction pull", "--splits 3", "--tile 64x256",
                                    "--tile 128x64", "--order ring", "--transport sm --communication-sms 5"}) {
    const auto json = run_json("all_gather_gemm --shape 700x600x128 --algo overlapped " + options);
    EXPECT_EQ(json["correct"], true) << options;
    hashes.insert(json["trace_hash"]);
  }
  EXPECT_EQ(hashes.size(), 8U);
}

TEST(Run, NoBlocksAreWhatSuits) {
  EXPECT_EQ(run_json("all_reduce --bytes 64K --blocks 0"), run_json("all_reduce --bytes 64K"));
}

TEST(Run, SizesHaveUnits) {
  for (const std::string size : {"2048", "2K", "2k", "2KiB"})
    EXPECT_EQ(run_json("all_reduce --phantom --bytes " + size)["bytes"], 2048) << size;
  EXPECT_EQ(run_json("all_reduce --phantom --bytes 3MiB")["bytes"], 3 << 20);
  EXPECT_EQ(run_json("all_reduce --phantom --bytes 1GiB")["bytes"], 1 << 30);
}

TEST(Run, SaysThatItsTimesArePredictions) {
  EXPECT_EQ(run_json("all_reduce --bytes 1K")["predicted"], true);
  for (const std::string what : {"all_reduce --bytes 1K", "all_gather_gemm --shape 64x64x64"})
    EXPECT_THAT(tandem("run " + what).out, HasSubstr("predicted with the machine model h200x4\n"));
}

TEST(Run, SaysWhatAMachineOfMorePesAssumes) {
  const std::string assumed = "one fabric joins 6 GPUs; the machine of the model has 4";
  EXPECT_EQ(run_json("all_reduce --bytes 1K --pes 6")["assumption"], assumed);
  EXPECT_THAT(tandem("run all_reduce --bytes 1K --pes 6").out, HasSubstr(assumed));
  EXPECT_THAT(tandem("bench all_reduce -e 1K --pes 6").out, HasSubstr(assumed));
  for (const std::string what : {"--pes 4", "--machine h100x8-rail --nodes 2"})
    EXPECT_FALSE(run_json("all_reduce --bytes 1K " + what).contains("assumption")) << what;
}

TEST(Run, ManyIterationsAreAMean) {
  const auto one = run_json("all_reduce --bytes 1K --phantom --iterations 1");
  const auto many = run_json("all_reduce --bytes 1K --phantom --iterations 50");
  EXPECT_NEAR(many["time_us"].get<double>(), one["time_us"].get<double>(), 0.2 * one["time_us"].get<double>());
}

TEST(Run, TableForPeople) {
  const auto outcome = tandem("run all_gather_gemm --shape 256x512x128");
  EXPECT_EQ(outcome.code, 0);
  for (const char* const word : {"time", "sequential", "ideal", "overlap", "largest error", "131072 elements, 0 wrong"})
    EXPECT_THAT(outcome.out, HasSubstr(word));
  // Another transport or tile may make it quicker: it is no lower bound of what goes one after the other.
  EXPECT_THAT(outcome.out, HasSubstr(" us, with these options; `tandem tune` looks for the quickest one\n"));
}

/// The value and the source of an option that --explain prints.
std::pair<std::string, std::string> explained(const nlohmann::json& json, const std::string& option) {
  for (const auto& choice : json["options"])
    if (choice["option"] == option) return {choice["value"], choice["source"]};
  ADD_FAILURE() << "no option " << option;
  return {};
}

TEST(Run, ExplainsTheOptionsOfAnOperator) {
  using Choice = std::pair<std::string, std::string>;
  const std::string problem = "all_gather_gemm --shape 256x64x64 --phantom";
  EXPECT_FALSE(run_json(problem).contains("options"));
  const auto json = run_json(problem + " --explain --splits 2 --tile 64x64");
  EXPECT_EQ(explained(json, "splits"), Choice("2", "caller"));
  EXPECT_EQ(explained(json, "tile"), Choice("64x64", "caller"));
  EXPECT_EQ(explained(json, "transport"), Choice("sm", "rule"));
  EXPECT_EQ(explained(json, "order"), Choice("own_first", "rule"));
  for (const auto& choice : json["options"]) EXPECT_EQ(choice.size(), 4U);
  const std::string text = tandem("run " + problem + " --explain --splits 2").out;
  EXPECT_THAT(
      text, ContainsRegex(
                "\n  options +each from .*: caller, cache, table, rule\n    option +value +source +reason\n    form "));
  EXPECT_THAT(text, ContainsRegex("\n    splits +2 +caller\n"));
  EXPECT_THAT(text, ContainsRegex("\n    transport +sm +rule +by the bytes of a shard"));
}

TEST(Run, ExplainsWhatTheCacheChose) {
  const TemporaryFolder folder;
  const std::string problem = "all_gather_gemm --shape 64x64x64 --pes 2 --machine h200x2";
  const std::string cache = "TANDEM_OPERATOR_CACHE";
  ASSERT_EQ(tandem("tune " + problem + " --out " + folder / "cache.json").code, 0);
  ::setenv(cache.c_str(), (folder / "cache.json").c_str(), 1);
  const auto json = run_json(problem + " --explain");
  ::unsetenv(cache.c_str());
  for (const char* const option : {"form", "transport", "tile"}) EXPECT_EQ(explained(json, option).second, "cache");
}

TEST(Run, ExplainsTheAlgorithmOfACollective) {
  using Choice = std::pair<std::string, std::string>;
  const auto chosen = run_json("all_reduce --bytes 1K --explain");
  EXPECT_EQ(explained(chosen, "algorithm"), Choice(chosen["algorithm"], "table"));
  EXPECT_THAT(chosen["options"][0]["reason"].get<std::string>(), HasSubstr("selection table nvidia-h200: "));
  EXPECT_EQ(explained(chosen, "threads"), Choice("512", "rule"));
  const auto given = run_json("all_reduce --bytes 1K --algo ring --blocks 3 --explain");
  EXPECT_EQ(explained(given, "algorithm"), Choice("ring", "caller"));
  EXPECT_EQ(explained(given, "blocks"), Choice("3", "caller"));
  const auto by_size = run_json("all_reduce --bytes 1M --algo ring --explain");
  EXPECT_EQ(explained(by_size, "blocks").second, "rule");
  EXPECT_GT(std::stoi(explained(by_size, "blocks").first), 0);
}

TEST(Run, WritesItsFiles) {
  const TemporaryFolder folder;
  const auto outcome =
      tandem("run all_gather_gemm --shape 256x512x128 --algo overlapped --transport ce --json " + folder / "a.json" +
             " --trace " + folder / "a.trace" + " --report " + folder / "a.html" + " --svg " + folder / "a.svg");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "a.json"))["correct"], true);
  EXPECT_FALSE(nlohmann::json::parse(read_file(folder / "a.trace"))["traceEvents"].empty());
  EXPECT_THAT(read_file(folder / "a.html"),
              ::testing::AllOf(HasSubstr("overlapped_ce_push"), HasSubstr("sequential"), HasSubstr("predicted time"),
                               HasSubstr("4 PEs of h200x4, predicted")));
  EXPECT_THAT(read_file(folder / "a.svg"), HasSubstr("4 PEs of h200x4, predicted"));
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "a.trace"))["otherData"]["title"],
            "overlapped_ce_push, predicted");
  EXPECT_THAT(read_file(folder / "a.svg"), HasSubstr("<svg"));
  for (const char* const name : {"a.trace", "a.html", "a.svg"})
    EXPECT_THAT(read_file(folder / name), HasSubstr("predicted with the machine model h200x4")) << name;
  for (const char* const name : {"a.trace", "a.html", "a.svg"})
    EXPECT_THAT(outcome.out, HasSubstr("wrote " + folder / name));
}

TEST(Run, ReportsShowHowGoodTheTimeIs) {
  const TemporaryFolder folder;
  tandem("run all_reduce --bytes 1M --phantom --report " + folder / "a.html");
  EXPECT_THAT(read_file(folder / "a.html"), ::testing::ContainsRegex("bus bandwidth\",\"[0-9.]+ of [0-9]+ GB/s"));
  tandem("run gemm_reduce_scatter --shape 512x512x512 --phantom --report " + folder / "b.html");
  EXPECT_THAT(read_file(folder / "b.html"), ::testing::ContainsRegex("TFLOP/s a PE\",\"[0-9]+ of [0-9]+"));
}

TEST(Run, RecordingChangesNothing) {
  const TemporaryFolder folder;
  const std::string what = "all_gather_gemm --shape 256x512x128";
  EXPECT_EQ(run_json(what), run_json(what + " --report " + folder / "a.html"));
}

TEST(Run, SaysWhatNoMeasurementWasComparedWith) {
  const auto of = [](const std::string& options) {
    return run_json("gemm_all_reduce --phantom --pes 2 " + options)["beyond_fit"];
  };
  EXPECT_TRUE(of("--machine h200x2 --shape 64x1024x1024").is_null());
  EXPECT_EQ(of("--machine mi300x8 --shape 64x1024x1024"), "GEMM times of mi300x8 hang on one published rate");
  EXPECT_EQ(of("--machine h200x2 --shape 32768x32768x16384"),
            "17.6 TFLOP for each PE, GEMM rates were fitted up to 14");
}

}  // namespace
}  // namespace tandem::cli
