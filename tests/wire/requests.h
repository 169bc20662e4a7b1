#pragma once
/// Requests of tests, and endpoints and memory that count what becomes of them.

#include "wire/pes.h"

namespace tandem::wire::testing {

inline constexpr Size kLastWord = Pes::kBytes - 8;

inline Request put(int pe, void* from, Size offset, Size bytes) {
  Request request;
  request.pe = pe;
  request.local = from;
  request.offset = offset;
  request.bytes = bytes;
  return request;
}

inline Request with_word(Request request, Epoch value, SignalOp op = SignalOp::kSet) {
  request.has_word = true;
  request.word = kLastWord;
  request.value = value;
  request.op = op;
  return request;
}

/// Returns a put of at most 16 bytes whose data is in the request.
inline Request held(Request request) {
  request.hold(request.local);
  request.local = nullptr;
  return request;
}

inline Disorder disorder(std::uint64_t seed) { return {.seed = seed, .delayed_polls = 6, .repeated_per_mille = 200}; }

inline Request get_of(void* to, Size bytes) {
  Request get = put(1, to, 0, bytes);
  get.kind = Request::Kind::kGet;
  return get;
}

/// Counts the writes of both kinds.
class CountedAccess final : public HostAccess {
 public:
  bool write(std::byte* to, View data) override {
    ++writes;
    return HostAccess::write(to, data);
  }
  bool write_packets(std::byte* to, View data) override {
    ++packet_writes;
    return HostAccess::write_packets(to, data);
  }
  std::atomic<int> writes{0}, packet_writes{0};
};

/// Counts what a proxy does without work.
class Idle final : public Wrapped {
 public:
  struct State {
    std::atomic<int> polls{0}, waits{0};
  };
  Idle(std::unique_ptr<Endpoint> inner, State& state) : Wrapped(std::move(inner)), state_(state) {}

  bool poll(const Take& take) override {
    ++state_.polls;
    return Wrapped::poll(take);
  }
  void wait(int ms) override {
    ++state_.waits;
    Wrapped::wait(std::min(ms, 1));
  }
  std::vector<Break> breaks() override { return inner_->breaks(); }

 private:
  State& state_;
};

}  // namespace tandem::wire::testing
