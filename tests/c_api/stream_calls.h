#pragma once
/// Streams and events that only note what happens to them.

#include <utility>
#include <vector>

#include "last_call.h"

namespace tandem::test {

using Numbers = std::vector<unsigned long long>;

/// A stream, and the streams for whose work it was told to wait.
struct FakeStream {
  unsigned long long number = 0;
  unsigned long long capture = 0;
  Numbers waited_for = {};
  Numbers waits_in_graph = {};
  std::vector<void*> records_before = {};  ///< for each record in a graph; a record is known by its stream
};

struct FakeEvent {
  unsigned long long of_stream = 0;
};

class FakeStreamCalls final : public c::StreamCalls {
 public:
  unsigned long long capture_of(void* stream) const override { return at(stream).capture; }
  unsigned long long number_of(void* stream) const override { return at(stream).number; }
  bool is_of_thread(void*) const override { return false; }
  void* make_event() const override { return new FakeEvent; }
  void destroy_event(void* event) const noexcept override { delete static_cast<FakeEvent*>(event); }
  void record(void* event, void* stream) const override {
    static_cast<FakeEvent*>(event)->of_stream = at(stream).number;
  }
  void wait(void* stream, void* event) const override {
    at(stream).waited_for.push_back(static_cast<FakeEvent*>(event)->of_stream);
  }
  void* record_in_graph(void* event, void* stream, void* previous) const override {
    record(event, stream);
    at(stream).records_before.push_back(previous);
    return stream;
  }
  void wait_in_graph(void* stream, void* event) const override {
    at(stream).waits_in_graph.push_back(static_cast<FakeEvent*>(event)->of_stream);
  }
  void exchange_capture_mode(int& other) const override { std::swap(mode, other); }

  mutable int mode = 0;

 private:
  static FakeStream& at(void* stream) { return *static_cast<FakeStream*>(stream); }
};

}  // namespace tandem::test
