// Messages between PEs in C, and the collectives whose parts differ in size.
#include "guard.h"

namespace {

using tandem::InvalidArgument;
using tandem::Size;
using tandem::c::CWorld;
using tandem::c::given;
using tandem::c::guarded;

Size bytes_of(size_t count, tandem_dtype type) {
  const Size element = tandem::size_of(tandem::c::type_of(type));
  constexpr size_t most = size_t{1} << 46;
  if (count > most) throw InvalidArgument("count: more than any memory holds given");
  return static_cast<Size>(count) * element;
}

const tandem_message* given_list(const tandem_message* messages, size_t count, const char* what) {
  return count == 0 ? messages : &given(messages, what);
}

void send_recv(tandem_world* world, const tandem_message* sends, size_t num_sends, const tandem_message* receives,
               size_t num_receives, void* stream) {
  CWorld& where = given(world, "world").world;
  given_list(sends, num_sends, "sends");
  given_list(receives, num_receives, "receives");
  std::vector<tandem::Send> out;
  std::vector<tandem::Receive> in;
  for (size_t i = 0; i < num_sends; ++i)
    out.push_back({sends[i].peer, sends[i].data, bytes_of(sends[i].count, sends[i].type)});
  for (size_t i = 0; i < num_receives; ++i)
    in.push_back({receives[i].peer, receives[i].data, bytes_of(receives[i].count, receives[i].type)});
  where.send_recv(out, in, static_cast<cudaStream_t>(stream));
}

/// Parts of one buffer, one for each PE.
struct Parts {
  std::byte* begin;
  const size_t* counts;
  const size_t* offsets;
  tandem_dtype type;

  Size bytes(int pe) const { return bytes_of(counts[pe], type); }
  std::byte* of(int pe) const { return begin + bytes_of(offsets[pe], type); }
};

/// This PE's own part stays on its GPU; every other goes to, or comes from, its PE.
template <class Out>
void exchange(CWorld& world, const Out& sent, const Parts& received, cudaStream_t stream) {
  const int me = world.pe();
  if (sent.bytes(me) != received.bytes(me))
    throw InvalidArgument("counts: this PE sends itself another number of elements than it receives");
  std::vector<tandem::Send> sends;
  std::vector<tandem::Receive> receives;
  for (int step = 1; step < world.pes(); ++step) {
    const int to = (me + step) % world.pes();
    const int from = (me + world.pes() - step) % world.pes();
    if (sent.bytes(to) > 0) sends.push_back({to, sent.of(to), sent.bytes(to)});
    if (received.bytes(from) > 0) receives.push_back({from, received.of(from), received.bytes(from)});
  }
  world.send_recv(sends, receives, stream);
  world.copy(received.of(me), sent.of(me), sent.bytes(me), stream);
}

}  // namespace

tandem_status tandem_send(tandem_world* world, const void* data, size_t count, tandem_dtype type, int peer,
                          void* stream) {
  const tandem_message message{const_cast<void*>(data), count, type, peer};
  return guarded([&] { send_recv(world, &message, 1, nullptr, 0, stream); });
}

tandem_status tandem_recv(tandem_world* world, void* data, size_t count, tandem_dtype type, int peer, void* stream) {
  const tandem_message message{data, count, type, peer};
  return guarded([&] { send_recv(world, nullptr, 0, &message, 1, stream); });
}

tandem_status tandem_send_recv(tandem_world* world, const tandem_message* sends, size_t num_sends,
                               const tandem_message* receives, size_t num_receives, void* stream) {
  return guarded([&] { send_recv(world, sends, num_sends, receives, num_receives, stream); });
}

tandem_status tandem_all_gather_v(tandem_world* world, const void* in, void* out, const size_t* counts,
                                  const size_t* offsets, tandem_dtype type, void* stream) {
  return guarded([&] {
    CWorld& where = given(world, "world").world;
    const Parts received{static_cast<std::byte*>(out), &given(counts, "counts"), &given(offsets, "offsets"), type};
    /// The same to everybody.
    struct Whole {
      std::byte* begin;
      Size size;
      Size bytes(int) const { return size; }
      std::byte* of(int) const { return begin; }
    };
    auto* const begin = static_cast<std::byte*>(const_cast<void*>(in));
    exchange(where, Whole{begin, received.bytes(where.pe())}, received, static_cast<cudaStream_t>(stream));
  });
}

tandem_status tandem_all_to_all_v(tandem_world* world, const void* in, const size_t* in_counts,
                                  const size_t* in_offsets, void* out, const size_t* out_counts,
                                  const size_t* out_offsets, tandem_dtype type, void* stream) {
  return guarded([&] {
    auto* const begin = static_cast<std::byte*>(const_cast<void*>(in));
    const Parts sent{begin, &given(in_counts, "in_counts"), &given(in_offsets, "in_offsets"), type};
    const Parts received{static_cast<std::byte*>(out), &given(out_counts, "out_counts"),
                         &given(out_offsets, "out_offsets"), type};
    exchange(given(world, "world").world, sent, received, static_cast<cudaStream_t>(stream));
  });
}
