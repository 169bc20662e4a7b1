// Processes on one GPU, which TANDEM_SHARE_GPU allows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "cuda/simulated/gpus.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

/// The environment of a PE, and what its process does first.
struct PeProcess {
  const char* share_gpu = nullptr;
  int device = 0;
  std::function<void()> first = [] {};
};

CudaOptions small_world(int device) {
  CudaOptions options;
  options.heap_bytes = Size{2} << 20;
  options.device = device;
  options.self_test = false;  // simulated kernels run as one thread
  options.join_timeout_s = 60;
  return options;
}

std::string outcome_of(const UniqueId& id, int pe, int pes, const PeProcess& own) {
  try {
    own.first();
    CudaProcess process(id, pe, pes, small_world(own.device));
    const Symm<int> word = process.world().heap().allocate<int>(1, "word");
    if (pe == 0)
      for (int other = 0; other < pes; ++other) process.world().copy_in(word.on(other), &other, sizeof(int));
    process.world().barrier();
    const Machine& machine = process.world().machine();
    if (word.local()[0] != pe) return "a world with wrong data";
    return fmt::format("a world on {} with {} copy engines", machine.name, machine.gpu.copy_engines);
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Returns what each of these PEs got, which are processes: "a world on MACHINE ...", or the text of its error.
std::vector<std::string> outcomes(const std::vector<PeProcess>& pes) {
  const UniqueId id = UniqueId::create();
  std::vector<int> outputs;
  std::vector<pid_t> children;
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return {};
    children.push_back(::fork());
    if (children.back() == 0) {
      unsetenv("TANDEM_SHARE_GPU");
      if (pes[pe].share_gpu != nullptr) setenv("TANDEM_SHARE_GPU", pes[pe].share_gpu, 1);
      ::dup2(ends[1], STDERR_FILENO);
      const std::string text = "\n" + outcome_of(id, static_cast<int>(pe), static_cast<int>(pes.size()), pes[pe]);
      const bool is_written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
      ::_exit(is_written ? 0 : 1);
    }
    ::close(ends[1]);
    outputs.push_back(ends[0]);
  }
  std::vector<std::string> texts;
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    std::string text;
    for (char c = 0; ::read(outputs[pe], &c, 1) == 1;) text += c;
    ::close(outputs[pe]);
    ::waitpid(children[pe], nullptr, 0);
    texts.push_back(text);
  }
  return texts;
}

TEST(ProcessesOnOneGpu, AreRefused) {
  for (const char* const value : {static_cast<const char*>(nullptr), "", "0"})
    EXPECT_THAT(outcomes({{value, 1}, {value, 2}, {value, 1}}),
                Each(AllOf(HasSubstr("PEs 0 and 2 are processes on one GPU"), HasSubstr("TANDEM_SHARE_GPU=1 lets"))));
}

TEST(ProcessesOnOneGpu, AreAllowed) {
  const auto texts = outcomes({{"1", 3}, {"1", 4}, {"1", 3}});
  EXPECT_THAT(texts, Each(::testing::EndsWith("\na world on simulated, shared by processes with 0 copy engines")));
  EXPECT_THAT(texts[0], HasSubstr("PE 2 shares a GPU with PE 0 (TANDEM_SHARE_GPU=1)"));
  EXPECT_EQ(texts[1].find("warning"), std::string::npos) << "the log has one line of a world: " << texts[1];
}

TEST(ProcessesOnOneGpu, AgreeOnTheVariable) {
  EXPECT_THAT(outcomes({{"1", 0}, {nullptr, 0}}),
              Each(HasSubstr("TANDEM_SHARE_GPU: PE 0 has 1, PE 1 has 0 or nothing; all PEs must have the same")));
  EXPECT_THAT(outcomes({{nullptr, 0}, {"1", 1}}), Each(HasSubstr("PE 0 has 0 or nothing, PE 1 has 1")))
      << "with a GPU for each, too";
}

TEST(ProcessesOnOneGpu, NeedAValueThatExists) {
  EXPECT_THAT(outcomes({{"1", 0}, {"yes", 0}}), Each(HasSubstr("TANDEM_SHARE_GPU: 'yes' given, allowed are 0 and 1")));
}

TEST(ProcessesOnOneGpu, NeedTurns) {
  const auto with_mps = [] { set_attribute(cudaDevAttrMpsEnabled, 1); };
  EXPECT_THAT(outcomes({{"1", 0, with_mps}, {"1", 0, with_mps}}), Each(HasSubstr("cannot be shared: CUDA's MPS")));
  EXPECT_THAT(outcomes({{"1", 0, with_mps}, {"1", 1, with_mps}}),
              Each(::testing::EndsWith("a world on simulated with 3 copy engines")));
  const auto exclusive = [] { set_attribute(cudaDevAttrComputeMode, cudaComputeModeExclusiveProcess); };
  EXPECT_THAT(outcomes({{"1", 0, exclusive}, {"1", 0, exclusive}}), Each(HasSubstr("nvidia-smi -c DEFAULT")));
}

}  // namespace
}  // namespace tandem::test
