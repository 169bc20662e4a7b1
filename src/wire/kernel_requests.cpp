#include "wire/kernel_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "tandem/error.h"

namespace tandem::wire {

namespace {

Size most_bytes_of(cuda::MailData data) {
  switch (data) {
    case cuda::MailData::kHeld:
      return kMostHeld;
    case cuda::MailData::kBeside:
      return cuda::kMostBeside;
    case cuda::MailData::kAtSource:
      break;
  }
  return std::numeric_limits<Size>::max();
}

/// `beside` is the place of data that is not in the slot. Throws InvalidArgument for bytes that would leave the slot or
/// the memory.
Request request_of(const cuda::MailSlot& slot, std::byte* beside) {
  Request request;
  request.kind = static_cast<Request::Kind>(slot.head & 0xFF);
  request.op = static_cast<SignalOp>(slot.head >> 8 & 0xFF);
  request.has_word = (slot.head >> 16 & 1) != 0;
  const auto data = static_cast<cuda::MailData>(slot.head >> 17 & 3);
  request.precedes_later = (slot.head >> 19 & 1) != 0;
  request.pe = static_cast<int>(slot.head >> 32);
  request.local = reinterpret_cast<void*>(slot.local);
  request.offset = static_cast<Size>(slot.offset);
  request.bytes = static_cast<Size>(slot.bytes);
  request.word = static_cast<Size>(slot.word);
  request.value = slot.value;
  if (const Size most = most_bytes_of(data); request.bytes < 0 || request.bytes > most)
    throw InvalidArgument(
        fmt::format("bytes: {} given to a kernel's put or get, allowed are 0 to {}", request.bytes, most));
  request.holds_data = data == cuda::MailData::kHeld;
  if (request.holds_data) {
    std::memcpy(request.held.data(), &slot.local, sizeof slot.local);
    std::memcpy(request.held.data() + sizeof slot.local, &slot.held, sizeof slot.held);
  }
  request.has_data_beside = data == cuda::MailData::kBeside;
  if (request.has_data_beside) request.local = beside;
  return request;
}

}  // namespace

std::optional<Request> KernelRequests::take() {
  cuda::MailSlot& slot = ring_.slots[(taken_ + 1) % cuda::kMailSlots];
  if (std::atomic_ref(slot.number).load(std::memory_order_acquire) != taken_ + 1) return std::nullopt;
  ++taken_;
  return request_of(slot, ring_.places[taken_ % cuda::kMailPlaces]);
}

void KernelRequests::note(std::uint64_t sent, std::uint64_t answered) {
  std::atomic_ref(progress_.sent).store(sent, std::memory_order_release);
  std::atomic_ref(progress_.answered).store(answered, std::memory_order_release);
}

Requests KernelRequests::requests() const {
  Requests all;
  for (std::uint64_t i = 0; i < cuda::kMailSlots; ++i)
    all.posted = std::max(all.posted, std::atomic_ref(ring_.slots[i].number).load(std::memory_order_relaxed));
  all.sent = std::atomic_ref(progress_.sent).load(std::memory_order_relaxed);
  all.answered = std::atomic_ref(progress_.answered).load(std::memory_order_relaxed);
  return all;
}

}  // namespace tandem::wire
