#pragma once
/// Runs a host program on real devices, GPUs or the CPUs of this computer: the counterpart of simulation.h.
/// docs/reference/worlds.md says how worlds come together.
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
#include "tandem/advanced/profile.h"
#include "tandem/advanced/unique_id.h"
#include "tandem/world.h"

namespace tandem {

namespace trace {
class Timeline;
}

/// Options of a world.
struct WorldOptions {
  /// The kind of device of the PEs: kGpu or kHost; kSimulated is refused (simulation.h). Without a value, TANDEM_DEVICE
  /// in the environment decides ("gpu" or "host"). Without both: GPUs if the program and the machine have some, else
  /// CPUs. The same on all PEs.
  std::optional<DeviceKind> kind = {};
  /// Initial capacity of each PE's symmetric heap for data. The same on all PEs.
  Size heap_bytes = Size{4} << 30;
  /// Maximum capacity. If a symmetric allocation does not fit, all PEs add at least as much memory behind the heap.
  /// Addresses and captured graphs stay valid. Each process reserves addresses for it once for every PE, at most 64 TiB
  /// in all. 0: no growth. The same on all PEs.
  Size heap_limit_bytes = 0;
  /// The part of the heap that holds signals and packets; 0: 256 MiB. It does not grow, and larger packets lie with the
  /// data. The same on all PEs.
  Size control_bytes = 0;
  /// Seconds for which all PEs of a world may wait on the device before the watchdog aborts. All waits then end, and
  /// synchronizing calls throw Timeout. TANDEM_TIMEOUT_S in the environment overrides it.
  double timeout_s = 30;
  /// The limit of a wait while some PE of the world is in no wait, because it computes or has not reached the call yet.
  /// TANDEM_ARRIVAL_TIMEOUT_S in the environment overrides it.
  double arrival_timeout_s = 600;
  /// Whether a kernel's blocks may start before the stream's previous kernel ends (programmatic dependent launch). It
  /// is ignored where PEs share a GPU, since waiting blocks could take the places of blocks that others wait for.
  bool early_launch = true;
  /// Host programs compare the calls of each plan: operation, type, root, algorithm and count. If calls differ, at
  /// least one PE gets InvalidArgument before it enqueues anything, and all others' waits end with that error. A
  /// comparison takes the host some 0.1 us a call, and the devices nothing. PEs must then make the calls of a plan in
  /// the same order, and capture the same calls into graphs. The same on all PEs. docs/reference/worlds.md says what is
  /// found and what is not.
  bool compare_calls = true;
  /// Whether the devices compare calls, too, before each call and in every replay of a graph. If calls differ, all PEs
  /// get an error and no buffer is changed. Copy-engine algorithms are not used. It costs a flag's round trip and a
  /// kernel for each call.
  bool check_calls = false;

  /// With `record.on` events can be recorded, and become a timeline. It is the same on all PEs.
  ProfileOptions record = {};

  // Processes only.

  /// This PE's device, in this process's numbering of its kind; -1: the PE's number within the node, modulo the
  /// devices.
  int device = -1;
  /// Seconds to wait for the other processes at the beginning and at every barrier of host programs (also allocations).
  double join_timeout_s = 600;
  /// Whether patterns are written and read between all pairs before the world is used.
  bool self_test = true;
};

/// A world whose PEs are threads of this process.
class WorldThreads {
 public:
  /// If there are more PEs than GPUs, PEs share them round-robin. This is for experiments and has limits of its own
  /// (docs/cuda.md). On CPUs each PE has a device of its own. Throws InvalidArgument (pes below 1), Unsupported (no
  /// such device, GPUs that do not reach each other) or OutOfMemory.
  explicit WorldThreads(int pes, const WorldOptions& options = {});
  ~WorldThreads();

  /// Returns kGpu or kHost.
  DeviceKind kind() const;
  /// Runs `program` on all PEs and joins. Rethrows the first error of any PE. It may be called again after a run
  /// without errors.
  void run(const std::function<void(World&)>& program);

  // These need WorldOptions::record; otherwise they throw Unsupported.

  /// Sets whether work that PE `pe` enqueues from now on is recorded; initially it is. Captured graphs keep the setting
  /// of their capture.
  void record(int pe, bool on);
  /// Returns the timeline of the runs so far, in the time of World::time_us. For replayed graphs it shows the last
  /// replay. Call it between runs.
  const trace::Timeline& timeline();
  /// Returns the losses of the last timeline, and the error of its clocks.
  const ProfileInfo& profile_info();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// This process as one PE of a world of processes on one host. A process may be in several worlds at once.
///
/// Waiting kernels hold their SMs. A launch is refused if its own grid does not fit the GPU. The caller ensures that
/// concurrent grids fit together, if there are several worlds, or plans in several streams. Otherwise they can wait for
/// each other's SMs until the timeout. Such calls must run one after the other, in the same order on all PEs. Use one
/// stream, or events between streams, or fewer blocks (CollectiveOptions::blocks).
///
/// When a PE's process ends or aborts a wait, the waits of all other PEs end, too. Synchronizing calls and barriers
/// there throw an error that names this PE. The world is then over; the process can join a new one.
class WorldProcess {
 public:
  /// Collective over the world's processes. Returns when all have joined, every link was tested and all kernels are
  /// loaded. Makes the device current. Throws InvalidArgument (inconsistent PE numbers or options) or Timeout (with the
  /// missing PEs). Throws Unsupported (no such device, another host, GPUs that do not reach each other), OutOfMemory or
  /// RuntimeFailure.
  WorldProcess(const UniqueId& id, int pe, int pes, const WorldOptions& options = {});
  /// Does the same for the place that a launcher gave this process (placement_from_environment).
  explicit WorldProcess(const Placement& place, const WorldOptions& options = {});
  /// Waits for this device's work and for the other processes, unless the world is over. All streams and plans of this
  /// world must be destroyed before.
  ~WorldProcess();
  /// Takes over `other`, which can only be destroyed afterwards.
  WorldProcess(WorldProcess&& other) noexcept;

  /// Does the destructor's waiting earlier, on all processes or on none. It is for callers with other threads in
  /// abort(), failure() and check(). Once these are done, only the destructor may follow. Never throws.
  void leave();

  /// Returns the world, which lives as long as this object.
  World& world();
  /// Returns this PE's number, from 0.
  int pe() const;
  /// Returns the number of PEs.
  int pes() const;
  /// Returns kGpu or kHost.
  DeviceKind kind() const;
  /// Returns this PE's device in the numbering of this process. Calls make it current while they last.
  int device() const;
  /// Returns a stream that enqueues work on an existing one. On GPUs `native` is a cudaStream_t, for example a
  /// framework's; on CPUs it is a result of Stream::native.
  Stream borrow_stream(void* native);
  /// Maps this PE's memory of `bytes` bytes at `pointer` for all PEs and returns it as a symmetric buffer. Collectives
  /// then need no copies of it.
  ///
  /// Collective: all PEs give memory of the same size, at the same place within allocations of the same sizes. The
  /// memory must come from an allocator that uses CUDA virtual memory management with exportable handles, such as
  /// torch's expandable segments. On CPUs it lies in a memory file (memfd_create with MFD_ALLOW_SEALING) that is mapped
  /// as a whole and shared. The file's descriptor is open, and the call seals it against shrinking. The memory must
  /// stay until it is unregistered. The handle's addresses differ from `pointer`; one kernel must not use both.
  ///
  /// Throws on all PEs, and the world goes on: Unsupported if one PE's memory is of another kind. InvalidArgument for
  /// missing, repeated or inconsistent memory. RuntimeFailure if one PE cannot map it.
  Symm<std::byte> register_buffer(void* pointer, Size bytes);
  /// Collective. No kernel may use the buffer any more. Throws InvalidArgument on all PEs if it is not registered on
  /// one.
  void unregister_buffer(void* pointer);
  /// Makes one world for the processes of each `color`, numbered by `key`, then by their numbers here, as
  /// MPI_Comm_split does. Returns null if the color is negative. Each world has its own heap, of `options`, on the same
  /// device. Collective over this world, which goes on; the new world may outlive it. Throws the errors of the
  /// constructor.
  std::unique_ptr<WorldProcess> split(int color, int key, const WorldOptions& options = {});
  /// The memory of this PE's part of the world.
  struct MemoryUse {
    Size kept = 0;              ///< bytes that a suspension keeps
    Size given_back = 0;        ///< bytes that it gives back
    bool is_suspended = false;  ///< between suspend() and resume()
  };
  /// Returns the memory of this PE.
  MemoryUse memory_use() const;
  /// Gives the memory of the heap's data back to the system, and keeps its contents in memory of the host. Addresses
  /// stay. Until `resume` only that, abort and the destructor may follow. Collective; it waits for this device's work.
  /// Throws Unsupported in a world of several hosts.
  void suspend();
  /// Brings suspended memory back. Collective. Throws OutOfMemory on all PEs if one has no room; the world stays
  /// suspended.
  void resume();
  /// Ends the world for all PEs. Waiting kernels end, and synchronizing calls and barriers throw RuntimeFailure with
  /// this text. Any thread may call it at any time. The world must still be destroyed.
  void abort(const std::string& why);
  /// Returns why the world is over, as far as the processes know, or "" if it is not. Any thread may call it.
  std::string failure() const;
  /// Returns which PEs this one waits for and which calls some PEs have not made, as far as this process can tell, or
  /// "". Any thread may call it.
  std::string waits() const;
  /// Throws the error that ended the world, including a wait that this device aborted. It waits for nothing; any thread
  /// may call it.
  void check() const;

  // These need WorldOptions::record; otherwise they throw Unsupported.

  /// Does the same as WorldThreads::record, for this PE.
  void record(bool on);
  /// Returns the timeline of all PEs since PE 0's process made this world. For replayed graphs it shows the last
  /// replay. Collective, while no PE's work runs. PE 0 gets the whole timeline, the others an empty one.
  const trace::Timeline& timeline();
  /// Describes the last timeline, on PE 0.
  const ProfileInfo& profile_info();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
