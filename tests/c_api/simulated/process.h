#pragma once
/// Programs in C on simulated GPUs: the C API's own sources, with a simulated world where WorldProcess would be.

#include <functional>
#include <vector>

#include "tandem.h"
#include "tandem/world.h"

struct CUstream_st;

namespace tandem::test {

/// One PE of such a program.
struct CPeer {
  World& simulated;     ///< for memory that is not the C API's, and to look at results
  tandem_world* world;  ///< made with tandem_world_create
  int pe;
  int n;
  void* stream;  ///< a cudaStream_t of the simulated world
};

/// Runs `program` on each of `pes` PEs. The program destroys the plans that it made. Its world is destroyed afterwards,
/// unless it has set it to null. Throws the errors of PEs, and InvalidArgument with the error of a world that could not
/// be made.
struct CRun {
  bool any_memory = false;
  int max_blocks = 0;
  std::function<const char*(int pe)> algorithms = {};
  Size heap_bytes = Size{16} << 30;  ///< with the world's own memory
};
void run_in_c(int pes, const std::function<void(CPeer&)>& program, const CRun& run = {});

/// A stream of the caller's, as CUDA sees it. Its address is a cudaStream_t.
struct CStream {
  explicit CStream(World& simulated);
  ~CStream();
  CStream(const CStream&) = delete;
  CStream& operator=(const CStream&) = delete;
  void* handle() { return state; }
  /// From here on the handle is no stream's: whatever is given it is refused.
  void destroy();
  /// A new stream has the handle of the one that was destroyed.
  void make_again(World& simulated);
  /// Belongs to capture `id` from here on; 0: to none.
  void capture(unsigned long long id);
  /// The capture that it belongs to, be it that somebody else drew it in.
  unsigned long long captured_in() const;
  /// Streams whose work it was told to wait for, by their numbers (CStream::number), in order.
  std::vector<unsigned long long> waited_for() const;
  unsigned long long number() const;

  CUstream_st* state;
};

/// The stream of cudaStreamPerThread in the calling thread, of which tests of one PE simulate several; null: none.
CStream*& stream_of_thread();

/// Hooks into CudaProcess for tests; each may be empty.
struct ProcessHooks {
  std::function<void()> waits_at_the_end;  ///< while it waits for the other processes before it goes
  std::function<void()> checks;            ///< within WorldProcess::check
  std::function<void()> goes;              ///< its memory is given back from here on
};
ProcessHooks& process_hooks();

/// The simulated program's current GPU.
int& current_gpu();
/// The current GPU at each call of CUDA's for which it matters, and at each use of a world.
std::vector<int>& gpus_used();

/// "": such a status with a text that contains `part`; else what there is instead.
std::string unlike(tandem_status status, tandem_status expected, const std::string& part = "");

}  // namespace tandem::test
