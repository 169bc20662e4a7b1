// ShiftAdd on this machine's GPUs, a thread of the program for each.

#include <atomic>
#include <cstdio>
#include <exception>

#include "shift_add_calls.h"

#include "tandem/cuda.h"
#include "tandem/error.h"

void register_kernels();  // on_gpus.cu

int main() try {
  register_kernels();
  const int pes = tandem::cuda_devices();
  if (pes == 0) throw tandem::Unsupported("no GPU, or no NVIDIA driver: tandem doctor says what is missing");
  std::atomic<tandem::Size> wrong{0};
  tandem::CudaThreads threads(pes, {.heap_bytes = tandem::Size{64} << 20});
  threads.run([&](tandem::World& world) { wrong += count_wrong_sums(world); });
  std::printf("%d GPUs, three calls, %lld sums wrong\n", pes, static_cast<long long>(wrong.load()));
  return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
