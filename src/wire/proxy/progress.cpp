// How far requests have come, for whoever waits.
#include <fmt/format.h>

#include "tandem/error.h"
#include "wire/proxy/proxy.h"

namespace tandem::wire {

void Proxy::take_answer(const Header& header, View data) {
  const auto found = asked_.find(header.value);
  const bool is_of_flush = header.kind == Kind::kFlushed;
  if (found == asked_.end() || found->second.pe != header.from || found->second.bytes != header.bytes ||
      is_of_flush != (found->second.to == nullptr))
    throw RuntimeFailure(fmt::format("PE {} answers what PE {} has not asked", header.from, setup_.place.me));
  if (!data.empty() && !write_answer(found->second.to, data)) return;
  const std::uint64_t request = found->second.request;
  asked_.erase(found);
  if (is_of_flush) note_order(request, header.from);
  if (--record(request).unanswered == 0) note();
}

/// Notes that a PE has answered a flush, which later requests to other PEs may wait for.
void Proxy::note_order(std::uint64_t request, int pe) {
  for (Ordering& one : orderings_)
    if (one.request == request) std::erase(one.pes, pe);
  std::erase_if(orderings_, [](const Ordering& one) { return one.pes.empty(); });
}

/// Writes the data of a get, unless gets are over. Each of the two threads first writes its flag and then reads the
/// other's. So one of them sees that of the other.
bool Proxy::write_answer(std::byte* to, View data) {
  struct Writing {
    explicit Writing(std::atomic<bool>& of) : flag(of) { flag.store(true, std::memory_order_seq_cst); }
    ~Writing() { flag.store(false, std::memory_order_release); }
    std::atomic<bool>& flag;
  };
  const Writing writing(is_writing_answer_);
  if (gets_are_over_.load(std::memory_order_seq_cst)) return false;
  setup_.access->write(to, data);
  setup_.access->finish();
  return true;
}

/// Requests count as sent, and as answered, where all before them do.
void Proxy::note() {
  has_news_ = false;
  for (; sent_records_ < records_.size() && records_[sent_records_].unsent == 0; ++sent_records_)
    sent_ = records_[sent_records_].until;
  for (; sent_records_ > 0 && records_.front().unanswered == 0; --sent_records_) {
    answered_ = records_.front().until;
    if (records_.front().is_flush) flushed_ = answered_.mailbox;
    records_.pop_front();
    ++first_record_;
  }
  const bool is_awaited = mailbox_.note(sent_.mailbox, answered_.mailbox, flushed_);
  if (KernelRequests* const kernels = setup_.access->kernel_requests()) kernels->note(sent_.kernels, answered_.kernels);
  if (is_awaited) setup_.ring();  // a ring without need would wake other waits
}

}  // namespace tandem::wire
