#if __has_include(<rdma/fabric.h>)

#include "wire/fabric/arrivals.h"

#include <sodium.h>

#include "tandem/error.h"
#include "wire/fabric/events.h"

namespace tandem::wire {

Owned<fid_eq> make_events(fid_fabric* fabric) {
  fi_eq_attr events{};
  events.wait_obj = FI_WAIT_FD;
  return opened<fid_eq>("events", [&](auto** to) { return ::fi_eq_open(fabric, &events, to, nullptr); });
}

Owned<fid_ep> make_receiver(const fi_info& info, const Lane& lane) {
  return opened<fid_ep>("messages",
                        [&](auto** to) { return ::fi_srx_context(lane.domain(), info.rx_attr, to, nullptr); });
}

Owned<fid_ep> make_end(const fi_info& description, const Lane& lane, fid_eq* events, fid_ep* receiver) {
  auto* const described = const_cast<fi_info*>(&description);
  auto end =
      opened<fid_ep>("endpoint", [&](auto** to) { return ::fi_endpoint(lane.domain(), described, to, nullptr); });
  check_fabric(::fi_ep_bind(end.get(), &events->fid, 0), "endpoint");
  check_fabric(::fi_ep_bind(end.get(), &lane.completions()->fid, FI_TRANSMIT | FI_RECV), "endpoint");
  check_fabric(::fi_ep_bind(end.get(), &receiver->fid, 0), "endpoint");
  check_fabric(::fi_enable(end.get()), "endpoint");
  return end;
}

Arrivals::Arrivals(const fi_info& info, fid_fabric* fabric)
    : pass_(bootstrap::random_key()),
      lane_(info, fabric, 0, kReceives),
      events_(make_events(fabric)),
      receiver_(make_receiver(info, lane_)) {
  lane_.receive_by(receiver_.get());
  auto* const described = const_cast<fi_info*>(&info);
  listener_ = opened<fid_pep>("listener", [&](auto** to) { return ::fi_passive_ep(fabric, described, to, nullptr); });
  check_fabric(::fi_pep_bind(listener_.get(), &events_->fid, 0), "listener");
  check_fabric(::fi_listen(listener_.get()), "listener");
  address_.resize(256);
  std::size_t bytes = address_.size();
  check_fabric(::fi_getname(&listener_->fid, address_.data(), &bytes), "address");
  address_.resize(bytes);
  address_.insert(address_.begin(), pass_.begin(), pass_.end());
}

Arrivals::~Arrivals() {
  if (!thread_.joinable()) return;
  is_stopping_ = true;
  sleep_.wake();
  thread_.join();
}

void Arrivals::start(std::size_t callers, std::chrono::microseconds search, const std::function<void()>& wake) {
  missing_ = callers;
  if (missing_ == 0) listener_.reset();
  if (search.count() == 0) return;
  wake_ = wake;
  thread_ = std::thread([this, search] { run(search); });
}

bool Arrivals::poll(const Take& take) {
  if (!thread_.joinable()) {
    if (listener_ != nullptr) read_events();
    return lane_.poll(take);
  }
  if (const auto message = arrived_.take()) {
    if (!take(*message)) release(*message);
    return true;
  }
  if (has_ended_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
  return false;
}

void Arrivals::release(View message) {
  if (!thread_.joinable()) return lane_.release(message);
  released_.put(message);
  sleep_.wake();
}

std::optional<int> Arrivals::sleeping_descriptor() const {
  if (thread_.joinable()) return std::nullopt;
  return lane_.sleeping_descriptor();
}

void Arrivals::run(std::chrono::microseconds search) {
  constexpr int longest_wait_ms = 25;
  try {
    auto moved = std::chrono::steady_clock::now();
    while (!is_stopping_) {
      const bool has_message = receive();
      const auto now = std::chrono::steady_clock::now();
      if (has_message)
        moved = now;
      else if (now - moved < search)
        std::this_thread::yield();
      else
        sleep_.wait({lane_.sleeping_descriptor()}, listener_ != nullptr ? 1 : longest_wait_ms);
    }
  } catch (...) {
    error_ = std::current_exception();
    has_ended_.store(true, std::memory_order_release);
    wake_();
  }
}

/// Receives on the thread. A message stays in its slot until it is released.
bool Arrivals::receive() {
  while (const auto message = released_.take()) lane_.release(*message);
  if (listener_ != nullptr) read_events();
  const bool has_message = lane_.poll([this](View message) {
    arrived_.put(message);
    return true;
  });
  if (has_message) wake_();
  return has_message;
}

/// Carries on with callers that are not there yet. The other end knows of a connection that has ended. Strangers who
/// connect and leave are no error.
void Arrivals::read_events() {
  for_each_event(
      events_.get(),
      [this](std::uint32_t kind, const fi_eq_cm_entry& entry, View behind) {
        if (kind == FI_CONNREQ) admit(entry.info, behind);
        if (kind == FI_CONNECTED && --missing_ == 0) listener_.reset();
      },
      [](const fi_eq_err_entry&) {});
}

void Arrivals::admit(fi_info* caller, View pass) {
  const Info description(caller);
  if (listener_ == nullptr) return;
  const bool is_of_world = pass.size() >= pass_.size() && sodium_memcmp(pass.data(), pass_.data(), pass_.size()) == 0;
  if (!is_of_world) {
    static_cast<void>(::fi_reject(listener_.get(), description->handle, nullptr, 0));
    return;
  }
  callers_.push_back(make_end(*description, lane_, events_.get(), receiver_.get()));
  check_fabric(::fi_accept(callers_.back().get(), nullptr, 0), "connection");
}

}  // namespace tandem::wire

#endif
