#pragma once
/// The parts of c_api_gpu_check, each in processes of its own.

#include <vector>

namespace tandem::test {

struct CApiPart {
  const char* name;
  void (*run)();  ///< of one PE, whose GPU is current; throws what went wrong
};
const std::vector<CApiPart>& c_api_parts();

void splits();
void growth();
void aborts();
void mixed_memory();
void other_threads();
void streams_that_go();

}  // namespace tandem::test
