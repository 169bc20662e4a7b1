#pragma once
/// What c_api_gpu_check checks, in processes of their own.

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
