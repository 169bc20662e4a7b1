// The calls of the host program.
#include "wire/proxy/proxy.h"

namespace tandem::wire {

/// Posts a request for the host program, and waits until it is answered or the world is over.
void Proxy::carry_out_now(const Request& request) {
  std::uint64_t number = 0;
  while (!setup_.is_over() && (number == 0 || !mailbox_.is_answered(number))) {
    if (number == 0) number = mailbox_.try_post(request);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (setup_.is_over()) end_gets();
}

void Proxy::end_gets() {
  gets_are_over_.store(true, std::memory_order_seq_cst);
  while (is_writing_answer_.load(std::memory_order_seq_cst)) std::this_thread::yield();
}

void Proxy::settle() {
  const bool is_quiet = mailbox_.is_quiet() && setup_.access->kernel_requests() == nullptr;
  if (!is_quiet) carry_out_now({.kind = Request::Kind::kFlush});
}

bool Proxy::copy(void* to, const void* from, Size bytes) {
  const auto source = mailbox_.far_spot(from);
  const auto spot = source ? source : mailbox_.far_spot(to);
  if (!spot) return false;
  Request request;
  request.kind = source ? Request::Kind::kGet : Request::Kind::kPut;
  request.pe = spot->pe;
  request.local = source ? to : const_cast<void*>(from);
  request.offset = spot->offset;
  request.bytes = bytes;
  carry_out_now(request);
  settle();
  return true;
}

std::vector<int> Proxy::unheard() const {
  std::vector<int> pes;
  for (int pe = 0; pe < setup_.place.pes; ++pe)
    if (!setup_.place.is_near(pe) && !peers_[static_cast<std::size_t>(pe)].was_heard.load(std::memory_order_relaxed))
      pes.push_back(pe);
  return pes;
}

Requests Proxy::requests() const {
  const KernelRequests* const kernels = setup_.access->kernel_requests();
  return kernels != nullptr ? kernels->requests() : mailbox_.requests();
}

}  // namespace tandem::wire
