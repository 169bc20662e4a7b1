#include <gmock/gmock.h>

#include "cli/tool.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/machine.h"
#include "tandem/operators.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using testing::tandem;

TEST(List, MentionsEveryAlgorithmWithItsSummary) {
  const auto outcome = tandem("list");
  EXPECT_EQ(outcome.code, 0);
  for (const Collective collective : all_collectives())
    EXPECT_THAT(outcome.out, HasSubstr("\n  " + std::string(name(collective)) + "\n"));
  for (const AlgorithmInfo& algorithm : collective_algorithms()) {
    EXPECT_THAT(outcome.out, HasSubstr((algorithm.one_node_only ? "  * " : "    ") + algorithm.name + " "));
    EXPECT_THAT(outcome.out, HasSubstr(algorithm.summary));
  }
}

TEST(List, MentionsOperatorsTheirFormsAndOrders) {
  const auto outcome = tandem("list");
  for (const Operator op : {Operator::kAllGatherGemm, Operator::kGemmReduceScatter, Operator::kGemmAllReduce}) {
    EXPECT_THAT(outcome.out, HasSubstr(name(op)));
    for (const std::string& order : tile_orders(op)) EXPECT_THAT(outcome.out, HasSubstr(order));
  }
  for (const Form form :
       {Form::kOverlapped, Form::kSequential, Form::kDecomposed, Form::kComputeOnly, Form::kCommunicationOnly})
    EXPECT_THAT(outcome.out, HasSubstr(name(form)));
}

TEST(List, HasTheLayersWithTheirDimensions) {
  // Hidden and intermediate sizes, heads and key-value heads: arXiv 2407.21783, table 3.
  const auto outcome = tandem("list");
  for (const char* const layer :
       {"llama3-8b:qkv           8192x6144x4096 ", "llama3-8b:o             8192x4096x4096 ",
        "llama3-8b:ffn_up        8192x28672x4096 ", "llama3-8b:ffn_down      8192x4096x14336 ",
        "llama3-70b:qkv          8192x10240x8192 ", "llama3-70b:o            8192x8192x8192 ",
        "llama3-70b:ffn_up       8192x57344x8192 ", "llama3-70b:ffn_down     8192x8192x28672 ",
        "llama3-405b:qkv         8192x18432x16384 ", "llama3-405b:o           8192x16384x16384 ",
        "llama3-405b:ffn_up      8192x106496x16384", "llama3-405b:ffn_down    8192x16384x53248 ",
        "tutorial07              8192x49152x12288 "})
    EXPECT_THAT(outcome.out, HasSubstr(layer));
}

TEST(Machines, ListsAllModelsAndExplainsOne) {
  const auto all = tandem("machines");
  EXPECT_EQ(all.code, 0);
  for (const std::string& name : machine_names()) EXPECT_THAT(all.out, HasSubstr(name + " "));
  const auto one = tandem("machines h200x4");
  EXPECT_EQ(one.code, 0);
  EXPECT_EQ(one.out, explain(load_machine("h200x4")));
}

TEST(Version, SaysVersionAndWhetherTheBuildHasCuda) {
  const auto outcome = tandem("--version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out,
              ::testing::MatchesRegex("tandem [0-9]+\\.[0-9]+\\.[0-9]+, with(out CUDA| CUDA for sm_.*)\n"));
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace tandem::cli
