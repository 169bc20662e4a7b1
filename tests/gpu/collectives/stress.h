#pragma once
/// Consecutive collectives in a replayed graph. Sizes alternate, grids may alternate, and inputs change on the device
/// with every call. Every result is checked there, and random PEs are late.

#include <memory>
#include <string>
#include <vector>

#include "gpu/collectives/stress_kernels.h"
#include "gpu/counted_check.h"
#include "gpu/graph.h"
#include "gpu/memory/litmus_device.h"
#include "tandem/advanced/collective_traits.h"

namespace tandem::test {

/// The word at index i of the result of PE `me` in call 0, and its increment in every further call.
struct ExpectedWord {
  Collective collective;
  Size count;
  int pes;

  std::uint32_t at(int me, Size i) const {
    const CollectiveSource from = traits(collective).source({count, pes, 0}, me, i);
    std::uint32_t total = 0;
    for (int pe = from.first; pe < from.first + from.pes; ++pe) total += base_word(pe, from.index);
    return total;
  }
};

/// One PE's part: some instances of a collective that take turns on the same buffers, in a stream of their own.
class Stress {
 public:
  /// Calls in a graph, and the least with which each size has one.
  static constexpr int kCalls = 8;
  static constexpr int kFewestCalls = 3;

  /// An instance for each of `blocks`: its grid. `calls` of them in the graph.
  Stress(World& world, const AlgorithmInfo& info, const std::vector<int>& blocks = {4}, int calls = kCalls)
      : world_(world), collective_(info.collective), stream_(world.make_stream(info.name)) {
    for (const int each : blocks) {
      CollectiveOptions options;
      options.type = DType::kU32;
      options.max_count = kCounts[0];
      options.algorithm = info.name;
      options.blocks = each;
      plans_.push_back(make_collective(world, collective_, options));
    }
    const Size most = kCounts[0] * world.num_pes();
    in_ = world.heap().allocate<std::uint32_t>(most, "in");
    out_ = world.heap().allocate<std::uint32_t>(most, "out");
    base_ = local_words(world, "base", base_words(world.pe(), most));
    differences_ = local_words(world, "differences", Words(static_cast<std::size_t>(most)));
    for (const Size count : kCounts) want_.push_back(local_words(world, "want", want(count)));
    fill_epochs_ = world.heap().epochs(kFillBlocks, "fill epochs");
    check_epochs_ = world.heap().epochs(kFillBlocks, "check epochs");
    delays_ = world.heap().epochs(2, "delays");
    graph_ = std::make_unique<Graph>(native(), [&] {
      for (int i = 0; i < calls; ++i) call(static_cast<std::size_t>(i));
    });
  }

  /// Collective: all PEs are to have made theirs.
  void enqueue(int replays) {
    for (int i = 0; i < replays; ++i) graph_->launch();
  }
  /// Waits for them. Words that differed from what they had to be, in any call.
  Size wrong() {
    stream_.synchronize();
    return count_wrong(world_, differences_, kCounts[0] * world_.num_pes());
  }

 private:
  static constexpr Size kCounts[] = {5003, 64, 1000};
  static_assert(std::size(kCounts) == kFewestCalls);
  static constexpr int kFillBlocks = 2;
  static constexpr double kMostDelayUs = 15;

  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_.native()); }
  Size outputs(Size count) const { return output_elements(collective_, count, world_.num_pes(), world_.pe(), 0); }
  Words want(Size count) const {
    Words words(static_cast<std::size_t>(outputs(count)));
    const ExpectedWord expected{collective_, count, world_.num_pes()};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = expected.at(world_.pe(), static_cast<Size>(i));
    return words;
  }

  void call(std::size_t i) {
    const std::size_t size = i % std::size(kCounts);
    const Size count = kCounts[size];
    const Size inputs = input_elements(collective_, count, world_.num_pes(), world_.pe(), 0);
    const Grid grid{kFillBlocks, 512};
    stream_.launch<StressFill>(grid, {base_, in_.local(), inputs, fill_epochs_});
    launch_delay(native(), delays_.words, static_cast<std::uint64_t>(world_.pe()), kMostDelayUs);
    plans_[i / 2 % plans_.size()]->run(stream_, Symm<const std::uint32_t>(in_).as<const std::byte>(),
                                       out_.as<std::byte>(), count);
    launch_delay(native(), delays_.words + 1, static_cast<std::uint64_t>(world_.pe() + 100), kMostDelayUs);
    const std::uint32_t factor = reduces(collective_) ? static_cast<std::uint32_t>(world_.num_pes()) : 1U;
    stream_.launch<StressCheck>(grid, {want_[size], out_.local(), differences_, outputs(count), factor, check_epochs_});
  }

  World& world_;
  Collective collective_;
  Stream stream_;
  std::vector<std::unique_ptr<CollectivePlan>> plans_;
  Symm<std::uint32_t> in_, out_;
  std::uint32_t* base_ = nullptr;
  std::uint32_t* differences_ = nullptr;
  std::vector<std::uint32_t*> want_;
  Epochs fill_epochs_, check_epochs_, delays_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace tandem::test
