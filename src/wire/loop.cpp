#include "wire/loop.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <random>
#include <utility>

namespace tandem::wire {

/// The messages for one PE.
struct Loop::Inbox {
  struct Message {
    Bytes bytes;
    int polls = 0;  ///< how many more pass it by
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Message> messages;
  bool is_woken = false;

  void add(Bytes bytes, int polls) {
    const std::lock_guard lock(mutex);
    messages.push_back({std::move(bytes), polls});
    changed.notify_one();
  }
};

namespace {

class LoopEndpoint final : public Endpoint {
 public:
  LoopEndpoint(std::vector<std::shared_ptr<Loop::Inbox>> inboxes, int me, const Disorder& disorder)
      : inboxes_(std::move(inboxes)),
        own_(*inboxes_[static_cast<std::size_t>(me)]),
        disorder_(disorder),
        random_(disorder.seed * 1024 + static_cast<std::uint64_t>(me)) {}

  std::string name() const override { return "threads of one process"; }
  Bytes address() const override { return {}; }
  void connect(const std::vector<Bytes>&) override {}
  Room room() const override { return {Size{64} << 10}; }

  bool send(int pe, View header, View data, const OnSent& sent) override {
    Departure departure{pe, {header.begin(), header.end()}, data, sent, sent ? delay() : 0};
    if (departure.polls == 0)
      depart(departure);
    else
      departures_.push_back(std::move(departure));
    return true;
  }

  bool poll(const Take& take) override {
    for (auto next = departures_.begin(); next != departures_.end();) {
      if (--next->polls > 0) {
        ++next;
        continue;
      }
      depart(*next);
      next = departures_.erase(next);
    }
    std::unique_lock lock(own_.mutex);
    auto& messages = own_.messages;
    if (messages.empty()) return false;
    auto first = messages.begin();
    while (first != messages.end() && first->polls > 0) --(first++)->polls;
    if (first == messages.end()) return true;  // all are late, and one will not be at a later poll
    Bytes message = std::move(first->bytes);
    messages.erase(first);
    lock.unlock();
    if (take(message)) kept_.push_back(std::move(message));
    return true;
  }

  void release(View message) override {
    kept_.remove_if([&](const Bytes& kept) { return kept.data() == message.data(); });
  }

  void wait(int ms) override {
    if (!departures_.empty()) return;
    std::unique_lock lock(own_.mutex);
    own_.changed.wait_for(lock, std::chrono::milliseconds(ms), [&] { return own_.is_woken || !own_.messages.empty(); });
    own_.is_woken = false;
  }

  void wake() override {
    const std::lock_guard lock(own_.mutex);
    own_.is_woken = true;
    own_.changed.notify_one();
  }

 private:
  /// A message whose data is still where the sender has it.
  struct Departure {
    int pe;
    Bytes message;
    View data;
    OnSent sent;
    int polls;  ///< until it departs
  };

  void depart(Departure& departure) {
    Bytes& message = departure.message;
    message.insert(message.end(), departure.data.begin(), departure.data.end());
    if (departure.sent) departure.sent();
    if (happens(disorder_.lost_per_mille)) return;
    Loop::Inbox& inbox = *inboxes_[static_cast<std::size_t>(departure.pe)];
    if (happens(disorder_.repeated_per_mille)) inbox.add(message, delay());
    inbox.add(std::move(message), delay());
  }

  bool happens(int per_mille) { return per_mille > 0 && static_cast<int>(random_() % 1000) < per_mille; }
  int delay() {
    return disorder_.delayed_polls == 0 ? 0
                                        : static_cast<int>(random_() % static_cast<unsigned>(disorder_.delayed_polls));
  }

  const std::vector<std::shared_ptr<Loop::Inbox>> inboxes_;
  Loop::Inbox& own_;
  const Disorder disorder_;
  std::mt19937_64 random_;
  std::deque<Departure> departures_;
  std::list<Bytes> kept_;  // messages in use
};

}  // namespace

Loop::Loop(int pes, const Disorder& disorder) : disorder_(disorder) {
  for (int pe = 0; pe < pes; ++pe) inboxes_.push_back(std::make_shared<Inbox>());
}

std::unique_ptr<Endpoint> Loop::endpoint(int pe) const {
  return std::make_unique<LoopEndpoint>(inboxes_, pe, disorder_);
}

}  // namespace tandem::wire
