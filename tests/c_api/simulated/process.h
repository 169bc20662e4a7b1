#pragma once
/// Programs in C: the C API's own sources, with PEs in threads on GPUs whose memory, streams and kernels are the CPUs'.

#include <functional>
#include <memory>
#include <vector>

#include "tandem.h"
#include "world/device/stream.h"

namespace tandem::test {

inline constexpr auto kInvalid = TANDEM_INVALID_ARGUMENT;

/// One PE of such a program.
struct CPeer {
  tandem_world* world;  ///< made with tandem_world_create
  int pe;
  int n;
  void* stream;  ///< a CStream
};

struct CRun {
  bool any_memory = false;
  int max_blocks = 0;
  std::function<const char*(int pe)> algorithms = {};
  std::size_t heap_bytes = std::size_t{64} << 20;  ///< initial heap, which does not grow
  int first_gpu = 0;                               ///< the GPU of PE 0
};
/// Runs `program` on each of `pes` PEs. The program destroys the plans that it made. Its world is destroyed afterwards,
/// unless it has set it to null. Throws the first error of a PE, and InvalidArgument with the error of a world that
/// could not be made.
void run_in_c(int pes, const std::function<void(CPeer&)>& program, const CRun& run = {});

/// A stream of the caller's on the current GPU, as CUDA sees it. Its address is the handle.
class CStream {
 public:
  CStream() { make_again(); }
  CStream(const CStream&) = delete;
  CStream& operator=(const CStream&) = delete;
  void* handle() { return this; }
  /// From here on the handle is no stream's: whatever is given it is refused.
  void destroy() { is_there = false; }
  /// A new stream has the handle of the one that was destroyed.
  void make_again();
  /// Belongs to capture `id` from here on; 0: to none.
  void capture(unsigned long long id) { captured_in = id; }

  std::unique_ptr<world::DeviceStream> stream;
  unsigned long long number = 0;       ///< the number that no other stream has
  unsigned long long captured_in = 0;  ///< its capture; 0: none
  bool is_there = true;
  /// The numbers of the streams for whose work it was told to wait, in order.
  std::vector<unsigned long long> waited_for = {};
};

/// The handle that stands for `stream_of_thread()`, as cudaStreamPerThread does. Tests of one PE set that stream.
void* handle_of_thread();
CStream*& stream_of_thread();

/// Called on a thread that waits for its GPU, as a world's end does; may be empty.
std::function<void()>& waits_for_gpu();

/// The calling thread's current GPU.
int& current_gpu();
/// The current GPU at each of the calling thread's calls for which it matters.
std::vector<int>& gpus_used();

/// Waits until the world has an error, which comes from the rendezvous, and returns it.
tandem_status error_of(tandem_world* world);

/// "": such a status with a text that contains `part`; else what there is instead.
std::string unlike(tandem_status status, tandem_status expected, const std::string& part = "");

}  // namespace tandem::test
