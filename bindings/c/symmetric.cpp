// Symmetric memory in C: peers' copies, one-sided copies, and signal words in stream order.
#include "guard.h"
#include "tandem/signal.h"

namespace {

using tandem::Epoch;
using tandem::InvalidArgument;
using tandem::Signal;
using tandem::Size;
using tandem::c::given;
using tandem::c::guarded;
using tandem::c::InWorld;
using tandem::c::size_of_c;

/// Checks the address of a signal word and returns the one on `pe`.
Signal* word_on(const InWorld& world, const void* word, int pe) {
  if (reinterpret_cast<std::uintptr_t>(word) % sizeof(Signal) != 0)
    throw InvalidArgument(fmt::format("word: {} given, allowed is a multiple of {}", fmt::ptr(word), sizeof(Signal)));
  return static_cast<Signal*>(world->on_pe(word, sizeof(Signal), pe, "word"));
}

}  // namespace

tandem_status tandem_peer_pointer(tandem_world* world, const void* pointer, int pe, void** peer) {
  return guarded([&] {
    given(peer, "peer") = nullptr;
    *peer = InWorld(world)->on_pe(pointer, 0, pe, "pointer");
  });
}

tandem_status tandem_put(tandem_world* world, void* to, const void* from, size_t bytes, int pe, void* stream) {
  return guarded([&] {
    const InWorld where(world);
    const Size size = size_of_c(bytes, "bytes");
    void* const there = where->on_pe(to, size, pe, "to");
    if (size == 0) return;
    given(static_cast<const char*>(from), "from");
    where->in_order(stream, [&](bool) { where->borrow_stream(stream).copy_async(there, from, size); });
  });
}

tandem_status tandem_write_signal(tandem_world* world, uint64_t* word, uint64_t value, int pe, void* stream) {
  return guarded([&] {
    const InWorld where(world);
    Signal* const there = word_on(where, word, pe);
    where->in_order(stream, [&](bool) { where->borrow_stream(stream).write_signal(there, Epoch{value}); });
  });
}

tandem_status tandem_wait_signal(tandem_world* world, const uint64_t* word, uint64_t value, void* stream) {
  return guarded([&] {
    const InWorld where(world);
    const Signal* const here = word_on(where, word, where->pe());
    where->in_order(stream, [&](bool) { where->borrow_stream(stream).wait_signal(here, Epoch{value}); });
  });
}
