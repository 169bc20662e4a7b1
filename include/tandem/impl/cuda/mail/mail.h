#pragma once
/// The ring in memory of the host through which a GPU's kernels post requests to the proxy of their PE.
///
/// A request takes a slot of 64 bytes. Its poster writes the words, and then the number by a release of system scope.
/// The proxy takes slots in the order of numbers, each once its number is there. A slot holds the data of a
/// short put. The poster writes the data of a longer one beside the slot. So the source may change once it is posted,
/// and the proxy copies nothing from the GPU.

#include <cstddef>
#include <cstdint>

#include "tandem/impl/config.h"
#include "tandem/range.h"
#include "tandem/signal.h"

namespace tandem::cuda {

/// The most bytes of a put that its request holds.
constexpr Size kMostHeld = 16;
/// The most bytes of a put whose poster writes its data beside the request.
constexpr Size kMostBeside = Size{64} << 10;

/// The first word of a request is made by `mail_head`.
struct alignas(64) MailSlot {
  std::uint64_t head;
  std::uint64_t local;   ///< address of a put's source, of a get's destination; or the first bytes that are held
  std::uint64_t offset;  ///< in the part of the PE
  std::uint64_t bytes;
  std::uint64_t word;  ///< offset of the signal's word
  std::uint64_t value;
  std::uint64_t held;    ///< further bytes that are held
  std::uint64_t number;  ///< 1, 2, ...: of the request that the slot holds
};
static_assert(sizeof(MailSlot) == 64);

enum class MailKind : std::uint32_t { kPut, kGet, kFlush };
/// Where the data of a put is.
enum class MailData : std::uint32_t { kAtSource, kHeld, kBeside };

constexpr std::uint64_t kMailSlots = 1024;
/// Data beside a request has the place of its number, modulo this.
constexpr std::uint64_t kMailPlaces = 128;

struct MailRing {
  MailSlot slots[kMailSlots];
  std::byte places[kMailPlaces][kMostBeside];
};

TANDEM_DEVICE constexpr std::uint64_t mail_head(MailKind kind, SignalOp op, bool has_word, int pe,
                                                MailData data = MailData::kAtSource) {
  return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(op) << 8 |
         static_cast<std::uint64_t>(has_word) << 16 | static_cast<std::uint64_t>(data) << 17 |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(pe)) << 32;
}
/// Returns the first word of a flush. Later requests to a PE may have to wait for the answers of the other PEs.
TANDEM_DEVICE constexpr std::uint64_t flush_head(bool precedes_later) {
  return static_cast<std::uint64_t>(MailKind::kFlush) | static_cast<std::uint64_t>(precedes_later) << 19;
}

/// The proxy's progress, in memory of the host that kernels read.
struct MailProgress {
  std::uint64_t sent;      ///< sources of all puts up to this request may change
  std::uint64_t answered;  ///< all gets and flushes up to this request are answered; its slot is free again
};

/// A PE's way to its proxy, as kernels get it.
struct MailLink {
  std::byte* base = nullptr;  ///< of the symmetric memory
  Size stride = 0;
  int node_size = 1;
  int me = 0;  ///< PE of the world
  MailRing* ring = nullptr;
  const MailProgress* progress = nullptr;
  std::uint64_t* posted = nullptr;  ///< in memory of the GPU: the last request, and then the last answer that was seen

  TANDEM_DEVICE bool is_near(int pe) const { return pe / node_size == me / node_size; }
  TANDEM_DEVICE Size offset_on(const void* address, int pe) const {
    return static_cast<const std::byte*>(address) - base - pe * stride;
  }
};

}  // namespace tandem::cuda
