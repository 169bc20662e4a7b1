#pragma once
/// Measures a collective on GPUs, one PE's part. Algorithms and NCCL alternate, and every result is checked.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/tandem/gpu/measure/nccl.h"
#include "tools/tandem/gpu/measure/timed_calls.h"
#include "tools/tandem/gpu/measure/user_memory.h"
#include "tools/tandem/run/run_collective.h"
#include "tune/sweep.h"

namespace tandem::cli {

/// The memory of Tandem's calls.
enum class GpuBuffers {
  kHeap,
  kRegistered,  ///< user memory, registered
  kPlain,       ///< user memory that peers cannot access (CollectiveOptions::local_in)
};
const char* name_of(GpuBuffers buffers);

/// The method of a measurement.
struct GpuMethod {
  bool graph = false;
  GpuBuffers buffers = GpuBuffers::kHeap;
  int calls = 20;
  std::optional<int> rounds;  ///< nothing: by size
  int warmups = 1;
  std::uint64_t seed = 1;
  Size checked_whole = Size{16} << 20;  ///< larger results are checked in samples
  Size sample_elements = 1 << 16;       ///< number of sampled elements
};

/// The measurement of one algorithm.
struct GpuRow {
  std::string algorithm;
  int blocks = 0;         ///< 0: the plan's choice
  bool selected = false;  ///< the library's own choice
  double us = 0;          ///< slowest PE
  Check check;            ///< over all PEs
  std::vector<OptionChoice> choices;
};

/// The measurements at one size.
struct GpuSize {
  Size bytes = 0;
  Size count = 0;
  std::vector<GpuRow> rows;
  std::map<std::string, double> peers;  ///< name -> us, if its result was right
  Size wrong_peers = 0;
};

/// Measures collectives. All its functions are collective over the world, and all PEs get the same results.
class CollectiveBenchmark {
 public:
  /// Registers user memory (CudaProcess::register_buffer).
  using Register = std::function<Symm<std::byte>(void* memory, Size bytes)>;

  /// Makes buffers for sizes up to `largest` bytes. `nccl` may be null, and so may `registered` if no buffers are
  /// registered.
  CollectiveBenchmark(World& world, Shared& shared, NcclPeer* nccl, const GpuMethod& method, Size largest,
                      const Register& registered = nullptr);

  /// Makes the inputs of `run`, for all later sizes.
  void prepare(const CollectiveRun& run);
  /// Measures `candidates` at `bytes` (rounded down). Candidates that cannot run there, or do not fit into the heap,
  /// are left out, unless there is only one.
  GpuSize measure(Size bytes, const std::vector<tune::Candidate>& candidates);
  /// Runs the last measurement's first candidate again in a graph. Two other calls before it synchronise the PEs.
  /// `record` switches the recording of enqueued work.
  void record_call(const std::function<void(bool)>& record);

 private:
  struct Program;
  /// The two buffers of a program's calls.
  struct Buffers {
    std::byte* in = nullptr;
    std::byte* out = nullptr;
  };

  Buffers place(const Buffers& whole) const;
  Symm<std::byte> buffer(const char* name, const Register& registered);
  CollectiveOptions options_for(const tune::Candidate& candidate) const;
  std::shared_ptr<CollectivePlan> plan(const tune::Candidate& candidate);
  int blocks_of(const tune::Candidate& candidate) const;
  Program program(const tune::Candidate& candidate);
  std::vector<Program> programs(const std::vector<tune::Candidate>& candidates);
  void add_peers(std::vector<Program>& programs);
  void restore(const Program& program);
  Check check(Program& program);
  void check_samples(const std::byte* out, Check& check);
  int rounds() const;
  bool changes_its_input() const { return run_.in_place && reduces(run_.collective); }

  World& world_;
  Shared& shared_;
  NcclPeer* nccl_;
  GpuMethod method_;
  Size largest_;
  Stream stream_;
  cudaStream_t cuda_stream_;
  std::vector<std::unique_ptr<UserMemory>> user_memory_;  // in and out outside of the heap
  Symm<std::byte> in_, out_;
  std::byte* inputs_;  // original inputs
  std::map<std::string, Buffers> peer_buffers_;

  CollectiveRun run_;
  CollectiveCall call_;
  std::unique_ptr<CollectiveData> data_;
  tune::Candidate last_;
  std::map<std::pair<std::string, int>, std::shared_ptr<CollectivePlan>> plans_;
  std::set<std::pair<std::string, int>> left_out_;
};

}  // namespace tandem::cli
