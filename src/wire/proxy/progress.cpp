// How far requests have come, for whoever waits.
#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"
#include "wire/proxy/proxy.h"

namespace tandem::wire {

void Proxy::take_answer(const Header& header, View data) {
  const auto found = asked_.find(header.value);
  const bool is_of_flush = header.kind == Kind::kFlushed;
  if (found == asked_.end() || found->second.pe != header.from || found->second.bytes != header.bytes ||
      is_of_flush != (found->second.to == nullptr))
    throw RuntimeFailure(fmt::format("PE {} answers what PE {} has not asked", header.from, setup_.place.me));
  if (!data.empty()) {
    setup_.access->write(found->second.to, data);
    setup_.access->finish();
  }
  const std::uint64_t request = found->second.request;
  asked_.erase(found);
  if (--open_.at(request).answers > 0) return;
  open_.erase(request);
  note();
}

/// Requests before the first one that waits for an answer are done.
void Proxy::note() {
  const bool all_answered = open_.empty();
  Counts answered = sent_;
  if (!all_answered) {
    answered.mailbox = std::min(answered.mailbox, open_.begin()->second.before.mailbox);
    answered.kernels = std::min(answered.kernels, open_.begin()->second.before.kernels);
  }
  for (auto next = flushes_.begin(); next != flushes_.end() && (all_answered || next->first < open_.begin()->first);
       next = flushes_.erase(next))
    flushed_ = next->second.mailbox;
  const bool is_awaited = mailbox_.note(sent_.mailbox, answered.mailbox, flushed_);
  if (KernelRequests* const kernels = setup_.access->kernel_requests()) kernels->note(sent_.kernels, answered.kernels);
  if (is_awaited) setup_.ring();  // a ring without need would wake other waits
}

}  // namespace tandem::wire
