#pragma once
/// Requests of one thread to the proxy of its PE. A wait for the proxy is bounded, as waits for signals are. Where
/// it ends early the world is over, and nothing is posted any more.

#include "tandem/impl/cuda/mail/mail.h"
#include "tandem/impl/cuda/watchdog.cuh"

namespace tandem::cuda {

/// Waits until a counter of the proxy has reached a request. Returns false if the wait was aborted.
__device__ inline bool await_proxy(const Context& context, const std::uint64_t* counter, std::uint64_t number) {
  Watchdog watchdog(context);
  for (std::uint64_t found; (found = load_acquire(counter)) < number;)
    if (watchdog.is_over(context.abort, number, found)) return false;
  return true;
}

/// Takes the number of a request, which is one of so many that are not answered. Returns 0 if the world is over.
__device__ inline std::uint64_t take_request_number(const Context& context, const MailLink& mail, std::uint64_t most) {
  const std::uint64_t number = atomicAdd(reinterpret_cast<unsigned long long*>(mail.posted), 1ULL) + 1;
  std::uint64_t* const seen = mail.posted + 1;
  if (number > load_relaxed(seen) + most) {  // the last request in the same slot or place may not be answered
    if (!await_proxy(context, &mail.progress->answered, number - most)) return 0;
    store_relaxed(seen, load_relaxed(&mail.progress->answered));
  }
  return number;
}

/// Posts a request under its number, behind all that the thread has seen and done.
__device__ inline void post_numbered(const MailLink& mail, std::uint64_t number, const MailSlot& request) {
  MailSlot* const slot = mail.ring->slots + number % kMailSlots;
  store_relaxed(&slot->head, request.head);
  store_relaxed(&slot->local, request.local);
  store_relaxed(&slot->offset, request.offset);
  store_relaxed(&slot->bytes, request.bytes);
  store_relaxed(&slot->word, request.word);
  store_relaxed(&slot->value, request.value);
  store_relaxed(&slot->held, request.held);
  store_release(&slot->number, number);
}

/// Posts a request behind all that the thread has seen and done. Returns its number; 0 if the world is over.
__device__ inline std::uint64_t post_request(const Context& context, const MailLink& mail, const MailSlot& request) {
  const std::uint64_t number = take_request_number(context, mail, kMailSlots);
  if (number != 0) post_numbered(mail, number, request);
  return number;
}

/// Posts a signal for a PE of another node.
__device__ inline std::uint64_t post_signal(const Context& context, const MailLink& mail, const Signal* word,
                                            Epoch value, int pe, SignalOp op) {
  return post_request(context, mail,
                      {.head = mail_head(MailKind::kPut, op, true, pe),
                       .word = static_cast<std::uint64_t>(mail.offset_on(word, pe)),
                       .value = value});
}

/// Returns eight of `bytes` bytes as a word, from the byte `first` on; zeros for those that are not there.
__device__ inline std::uint64_t held_word(const void* from, Size first, Size bytes) {
  std::uint64_t word = 0;
  for (int i = 0; i < 8; ++i)
    if (first + i < bytes)
      word |= static_cast<std::uint64_t>(static_cast<const unsigned char*>(from)[first + i]) << 8 * i;
  return word;
}

/// Posts a put to a PE of another node, and behind its data a signal if `word` is not null. The source of a put of at
/// most kMostHeld bytes may change afterwards.
__device__ inline std::uint64_t post_put(const Context& context, const MailLink& mail, const void* to, const void* from,
                                         Size bytes, const Signal* word, Epoch value, int pe, SignalOp op) {
  const bool is_held = bytes <= kMostHeld;
  return post_request(
      context, mail,
      {.head = mail_head(MailKind::kPut, op, word != nullptr, pe, is_held ? MailData::kHeld : MailData::kAtSource),
       .local = is_held ? held_word(from, 0, bytes) : reinterpret_cast<std::uint64_t>(from),
       .offset = static_cast<std::uint64_t>(mail.offset_on(to, pe)),
       .bytes = static_cast<std::uint64_t>(bytes),
       .word = word == nullptr ? 0 : static_cast<std::uint64_t>(mail.offset_on(word, pe)),
       .value = value,
       .held = is_held ? held_word(from, 8, bytes) : 0});
}

/// Posts a put whose data is in the place of this number.
__device__ inline void post_put_beside(const MailLink& mail, std::uint64_t number, const void* to, Size bytes,
                                       const Signal* word, Epoch value, int pe, SignalOp op) {
  post_numbered(mail, number,
                {.head = mail_head(MailKind::kPut, op, word != nullptr, pe, MailData::kBeside),
                 .offset = static_cast<std::uint64_t>(mail.offset_on(to, pe)),
                 .bytes = static_cast<std::uint64_t>(bytes),
                 .word = word == nullptr ? 0 : static_cast<std::uint64_t>(mail.offset_on(word, pe)),
                 .value = value});
}

__device__ inline std::uint64_t post_get(const Context& context, const MailLink& mail, void* to, const void* from,
                                         Size bytes, int pe) {
  return post_request(context, mail,
                      {.head = mail_head(MailKind::kGet, SignalOp::kSet, false, pe),
                       .local = reinterpret_cast<std::uint64_t>(to),
                       .offset = static_cast<std::uint64_t>(mail.offset_on(from, pe)),
                       .bytes = static_cast<std::uint64_t>(bytes)});
}

/// Waits until the PEs of other nodes have carried out all requests so far.
__device__ inline void flush_requests(const Context& context, const MailLink& mail) {
  const std::uint64_t number = post_request(context, mail, {.head = flush_head(false)});
  if (number != 0) await_proxy(context, &mail.progress->answered, number);
}

/// Waits until the sources of all puts so far may change. The proxy carries out all requests so far before later ones.
/// It need not have sent the flush, which has no source.
__device__ inline void order_requests(const Context& context, const MailLink& mail) {
  const std::uint64_t number = post_request(context, mail, {.head = flush_head(true)});
  if (number != 0) await_proxy(context, &mail.progress->sent, number - 1);
}

}  // namespace tandem::cuda
