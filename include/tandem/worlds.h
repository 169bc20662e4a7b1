#pragma once
/// Runs a host program on real devices, GPUs or the CPUs of this computer: the counterpart of simulation.h.
/// docs/worlds.md says how worlds come together.
///
/// One process for each PE, started by torchrun, srun, `tandem launch` or anything else:
///
///   WorldProcess process(placement_from_environment());        // or WorldProcess(id, pe, pes)
///   World& world = process.world();
///
/// Or one thread of this process for each PE:
///
///   WorldThreads threads(4);
///   threads.run([](World& world) { ... });                     // the same program that runs in the simulator
///
/// Both take GPUs where the program has the CUDA backend and the machine has GPUs, else CPUs; WorldOptions::kind
/// decides otherwise.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tandem/advanced/placement.h"
#include "tandem/advanced/recording.h"
#include "tandem/advanced/unique_id.h"
#include "tandem/world.h"

namespace tandem {

namespace trace {
class Timeline;
}

struct WorldOptions {
  /// The devices of the PEs: kGpu or kHost; kSimulated is refused (simulation.h). Without a value: as TANDEM_DEVICE in
  /// the environment says ("gpu" or "host"), else GPUs where the program and the machine have some, else CPUs. The same
  /// on all PEs.
  std::optional<DeviceKind> kind = {};
  /// Capacity of each PE's symmetric heap for data at the beginning. The same on all PEs.
  Size heap_bytes = Size{4} << 30;
  /// What it may grow to: where a symmetric allocation does not fit, all PEs add memory behind the heap, at least as
  /// much again; addresses stay, captured graphs too. 0: it does not grow. The same on all PEs.
  Size heap_limit_bytes = 0;
  /// How long a world may stand still, each of its PEs in a wait on the device, before one gives up; all waits then
  /// end, and what synchronizes throws Timeout. TANDEM_TIMEOUT_S in the environment overrides it.
  double timeout_s = 30;
  /// The same for a wait while a PE of the world is in none: it has not come to the call yet, or it computes.
  /// TANDEM_ARRIVAL_TIMEOUT_S in the environment overrides it.
  double arrival_timeout_s = 600;
  /// A kernel's blocks may take their places before the stream's previous kernel ends (programmatic dependent launch).
  /// Not where PEs share a GPU: there, waiting blocks could take the places of blocks that others wait for.
  bool early_launch = true;
  /// Host programs compare what they call of each plan, operation, type, root, algorithm and count: of PEs whose calls
  /// differ at least one gets InvalidArgument before it enqueues anything, and all others' waits end with that error.
  /// Takes the host some 0.1 us a call, the GPUs nothing. PEs then make the calls of a plan in the same order, and
  /// capture into graphs the same of them. The same on all PEs. docs/worlds.md says what is found and what is not.
  bool compare_calls = true;
  /// The GPUs compare too, before each call, in every replay of a graph: where calls differ, all PEs get an error and
  /// nothing touches a buffer; algorithms by copy engine are not taken. Costs a trip of a flag and a kernel a call.
  bool check_calls = false;

  /// On: what happens can be recorded, and becomes a timeline. `record.on` is the same on all PEs.
  RecordOptions record = {};

  // Processes only.

  /// This PE's device, as this process numbers those of the kind; -1: its number within the node, modulo their count.
  int device = -1;
  /// How long to wait for the other processes, at the beginning and wherever host programs meet (allocations,
  /// barriers).
  double join_timeout_s = 600;
  /// Patterns are written and read between all pairs before the world is used.
  bool self_test = true;
};

/// A world whose PEs are threads of this process.
class WorldThreads {
 public:
  /// More PEs than GPUs share them, given out in turns: for trying out, with limits of their own (docs/cuda.md). Each
  /// PE on CPUs has a device of its own. Throws InvalidArgument (pes below 1), Unsupported (no such device, GPUs that
  /// do not reach each other), OutOfMemory.
  explicit WorldThreads(int pes, const WorldOptions& options = {});
  ~WorldThreads();

  /// kGpu or kHost.
  DeviceKind kind() const;
  /// Runs `program` on all PEs and joins. Rethrows the first error of any PE. May be called again after a run that did
  /// not fail.
  void run(const std::function<void(World&)>& program);

  // With WorldOptions::record on; Unsupported without, and on CPUs.

  /// Whether what PE `pe` enqueues from now on is recorded, as it is from the start. What was captured into a graph
  /// stays as it was captured.
  void record(int pe, bool on);
  /// What happened in the runs so far, in the time of World::time_us; of work in graphs that were replayed, the last
  /// replay. Between runs.
  const trace::Timeline& timeline();
  const RecordingInfo& recording_info();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// This process as one PE of a world of processes of one host. A process may be in several worlds at once.
///
/// What waits for peers holds SMs meanwhile. A launch is refused whose own grid does not fit the GPU; that the grids of
/// several worlds, or of plans in several streams, fit it together is the caller's to see to. Where those that may run
/// at once do not, they can wait for each other's SMs for ever (Timeout): such calls go one after the other, in the
/// same order on all PEs, in one stream or with events between streams, or take fewer blocks
/// (CollectiveOptions::blocks).
///
/// When a PE's process ends or gives up a wait, every other PE's waits end too, and what synchronizes or meets there
/// throws, naming that PE. The world is over then; the process lives on and can join a new one.
class WorldProcess {
 public:
  /// Collective over the world's processes: returns when all have come, every link was tested and all kernels are
  /// loaded. Makes the device current. Throws InvalidArgument (PE numbers or options that do not fit together), Timeout
  /// (who did not come), Unsupported (no such device, another host, GPUs that do not reach each other), OutOfMemory,
  /// RuntimeFailure.
  WorldProcess(const UniqueId& id, int pe, int pes, const WorldOptions& options = {});
  explicit WorldProcess(const Placement& place, const WorldOptions& options = {});
  /// Waits for this GPU's work and for the other processes to come here too, unless the world is over. Streams and
  /// plans of this world must be gone.
  ~WorldProcess();
  /// Moved from, `other` can only be destroyed.
  WorldProcess(WorldProcess&& other) noexcept;

  /// The same waits before, on all processes or on none, for programs that let other threads call abort(), failure()
  /// and check() meanwhile. Only the destructor may follow, when these threads are done. Never throws.
  void leave();

  World& world();
  int pe() const;
  int pes() const;
  /// kGpu or kHost.
  DeviceKind kind() const;
  /// This PE's device, as this process numbers them. Calls make it current where another one is, while they last.
  int device() const;
  /// Work for a stream that is somebody else's. On GPUs `native` is a cudaStream_t, of a framework whose tensors the
  /// work reads; on CPUs it is what Stream::native gives.
  Stream borrow_stream(void* native);
  /// Maps this PE's memory of `bytes` bytes at `pointer` for all PEs, and gives it as a symmetric buffer, so that
  /// collectives need no copies of it. Collective: all PEs give memory of the same size, at the same place of
  /// allocations of the same sizes. The memory has to come from an allocator that uses CUDA virtual memory management
  /// with exportable handles (torch's expandable segments), and to stay until it is unregistered; memory of CPUs cannot
  /// be registered. The handle's
  /// addresses are others than `pointer`: one kernel uses one of the two. Throws, on all PEs, Unsupported where one
  /// PE's memory is of another kind, InvalidArgument where one gives none, or what it has registered already, and where
  /// they do not fit together, RuntimeFailure where one cannot map it; the world goes on.
  Symm<std::byte> register_buffer(void* pointer, Size bytes);
  /// Collective; no kernel uses it any more. Throws InvalidArgument, on all PEs, for what is not registered on one.
  void unregister_buffer(void* pointer);
  /// Worlds of their own for the processes with the same `color`, numbered by `key`, then by their numbers here, as
  /// MPI_Comm_split numbers them; null where the color is negative. Each has its own heap, of `options`, on the same
  /// device. Collective over this world, and this world goes on; the new one may outlive it. Throws as the constructor.
  std::unique_ptr<WorldProcess> split(int color, int key, const WorldOptions& options = {});
  /// Ends the world for all PEs: kernels that wait end, and what synchronizes or meets throws RuntimeFailure with this
  /// text. From any thread, at any time. The world still has to be destroyed.
  void abort(const std::string& why);
  /// Why the world is over, as far as the processes have told each other; empty: it is not. From any thread.
  std::string failure() const;
  /// Throws what ended the world, a wait on this GPU that gave up included. Waits for nothing; from any thread.
  void check() const;

  // With WorldOptions::record on; Unsupported without, and on CPUs.

  /// As WorldThreads::record, of this PE.
  void record(bool on);
  /// What happened on all PEs so far, in the time since PE 0's process made this world; of work in graphs that were
  /// replayed, the last replay. Collective, while no PE's work runs. PE 0 gets all of it, the others nothing.
  const trace::Timeline& timeline();
  /// Of the last timeline, on PE 0.
  const RecordingInfo& recording_info();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
