// Messages between PEs in C, and the collectives whose parts differ in size.
#include "guard.h"

namespace {

using tandem::InvalidArgument;
using tandem::Size;
using tandem::c::CWorld;
using tandem::c::given;
using tandem::c::guarded;
using tandem::c::InWorld;

Size bytes_of(size_t count, tandem_dtype type) {
  return tandem::c::size_of_c(count, "count") * tandem::size_of(tandem::c::type_of(type));
}

/// Looked at before anything is read.
void check_list(const tandem_message* messages, size_t count, const char* what) {
  constexpr auto most = static_cast<size_t>(tandem::SendRecvGroup::kMostMessages);
  if (count > most)
    throw InvalidArgument(fmt::format("num_{}: {} given, allowed are {} messages in all", what, count, most));
  if (count > 0) given(messages, what);
}

void send_recv(tandem_world* world, const tandem_message* sends, size_t num_sends, const tandem_message* receives,
               size_t num_receives, void* stream) {
  const InWorld where(world);
  check_list(sends, num_sends, "sends");
  check_list(receives, num_receives, "receives");
  std::vector<tandem::Send> out;
  std::vector<tandem::Receive> in;
  for (size_t i = 0; i < num_sends; ++i)
    out.push_back({sends[i].peer, sends[i].data, bytes_of(sends[i].count, sends[i].type)});
  for (size_t i = 0; i < num_receives; ++i)
    in.push_back({receives[i].peer, receives[i].data, bytes_of(receives[i].count, receives[i].type)});
  where->send_recv(out, in, {}, stream);
}

/// Parts of one buffer, one for each PE.
struct Parts {
  const char* name;
  std::byte* begin;
  const size_t* counts;
  const size_t* offsets;
  tandem_dtype type;

  Size bytes(int pe) const { return bytes_of(counts[pe], type); }
  /// Null given for a part that has elements is no address, whatever its offset.
  std::byte* of(int pe) const { return bytes(pe) > 0 ? &given(begin, name) + bytes_of(offsets[pe], type) : begin; }
};

/// This PE's own part stays on its GPU; every other goes to, or comes from, its PE.
template <class Out>
void exchange(CWorld& world, const Out& sent, const Parts& received, void* stream) {
  const int me = world.pe();
  if (sent.bytes(me) != received.bytes(me))
    throw InvalidArgument(fmt::format("out_counts[{}]: {} bytes given, allowed is {}, as this PE sends itself", me,
                                      received.bytes(me), sent.bytes(me)));
  std::vector<tandem::Send> sends;
  std::vector<tandem::Receive> receives;
  for (int step = 1; step < world.pes(); ++step) {
    const int to = (me + step) % world.pes();
    const int from = (me + world.pes() - step) % world.pes();
    if (sent.bytes(to) > 0) sends.push_back({to, sent.of(to), sent.bytes(to)});
    if (received.bytes(from) > 0) receives.push_back({from, received.of(from), received.bytes(from)});
  }
  world.send_recv(sends, receives, {received.of(me), sent.of(me), sent.bytes(me)}, stream);
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
    const InWorld where(world);
    const Parts received{"out", static_cast<std::byte*>(out), &given(counts, "counts"), &given(offsets, "offsets"),
                         type};
    /// The same to everybody.
    struct Whole {
      std::byte* begin;
      Size size;
      Size bytes(int) const { return size; }
      std::byte* of(int) const { return size > 0 ? &given(begin, "in") : begin; }
    };
    auto* const begin = static_cast<std::byte*>(const_cast<void*>(in));
    exchange(*where, Whole{begin, received.bytes(where->pe())}, received, stream);
  });
}

tandem_status tandem_all_to_all_v(tandem_world* world, const void* in, const size_t* in_counts,
                                  const size_t* in_offsets, void* out, const size_t* out_counts,
                                  const size_t* out_offsets, tandem_dtype type, void* stream) {
  return guarded([&] {
    auto* const begin = static_cast<std::byte*>(const_cast<void*>(in));
    const Parts sent{"in", begin, &given(in_counts, "in_counts"), &given(in_offsets, "in_offsets"), type};
    const Parts received{"out", static_cast<std::byte*>(out), &given(out_counts, "out_counts"),
                         &given(out_offsets, "out_offsets"), type};
    exchange(*InWorld(world), sent, received, stream);
  });
}
