// Checks the symmetric heap of PEs that are threads: buffers that are freed, and growth. Prints what fails, and "N
// passed, N failed"; exit code 1 if anything failed.

#include <cstdio>

#include "gpu/memory/heap_program.h"

namespace tandem::test {

namespace {

int check_all() {
  const int devices = cuda_devices();
  if (devices == 0) {
    std::printf("no GPU\n");
    return 2;
  }
  int failed = 0;
  const int all[] = {devices, 2 * devices};
  for (const int pes : all) {
    try {
      CudaThreads threads(pes, growing_world());
      threads.run(check_heap);
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAILED on %d PEs: %s\n", pes, error.what());
    }
  }
  std::printf("%d passed, %d failed\n", 2 - failed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

}  // namespace tandem::test

int main() { return tandem::test::check_all(); }
