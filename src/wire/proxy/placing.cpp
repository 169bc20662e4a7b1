// Data and signals of other PEs, which are placed in this PE's memory.
#include <fmt/format.h>

#include "base/outside_order.h"
#include "tandem/error.h"
#include "wire/proxy/proxy.h"

namespace tandem::wire {

void Proxy::require_within(const Header& header, Size offset, Size bytes) const {
  const Size most = bytes_.load(std::memory_order_acquire);
  if (offset < 0 || bytes < 0 || bytes > most || offset > most - bytes)
    throw InvalidArgument(fmt::format("PE {} reaches for bytes {} to {} of PE {}, which has {}", header.from, offset,
                                      static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(bytes),
                                      setup_.place.me, most));
}

void Proxy::put(const Header& header, View data) {
  require_within(header, header.offset, header.bytes);
  if (header.has_word) {
    require_within(header, header.word, Size{sizeof(Signal)});
    if (header.word % Size{sizeof(Signal)} != 0)
      throw InvalidArgument(fmt::format("PE {} signals offset {} of PE {}, allowed are multiples of {}", header.from,
                                        header.word, setup_.place.me, sizeof(Signal)));
  }
  order_enters_process();
  std::byte* const to = own() + header.offset;
  if (!header.has_word && !header.precedes_word) {
    stays_in_use_ |= setup_.access->write_packets(to, data);
    return;
  }
  if (!data.empty()) stays_in_use_ |= setup_.access->write(to, data);
  if (header.has_word) change_word(header);
}

void Proxy::change_word(const Header& header) {
  setup_.access->change(*reinterpret_cast<Signal*>(own() + header.word), header.op, header.value);
  setup_.ring();
}

}  // namespace tandem::wire
