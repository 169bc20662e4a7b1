#pragma once
/// Kernels that are written in place, as a lambda of the block.

#include "tandem/stream.h"

namespace tandem::test {

template <class Body>
struct BodyKernel {
  using Args = Body;
  template <class Block>
  static void run(Block& block, const Args& body) {
    body(block);
  }
};

template <class Body>
void launch(Stream& stream, Grid grid, const Body& body) {
  stream.launch<BodyKernel<Body>>(grid, body);
}

}  // namespace tandem::test
