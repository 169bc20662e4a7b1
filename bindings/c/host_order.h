#pragma once
/// The order of calls on CPUs, where programs in C have one stream, NULL.

#include "stream_order.h"

namespace tandem::c {

class HostOrder final : public StreamOrder {
 public:
  void reserve(void*, int) override {}
  void ended(void*) override {}

 protected:
  bool begin(void*) override { return false; }
  void end(void*) override {}
  void end_failed(void*) noexcept override {}
};

}  // namespace tandem::c
