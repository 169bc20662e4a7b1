#include "wire/proxy.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace tandem::wire {

namespace {

constexpr int kLongestWaitMs = 25;
/// Messages whose data may be read or under way at a time.
constexpr std::size_t kMostOutgoing = 32;
/// Less data is copied, so that its source may change at once.
constexpr std::size_t kLeastUncopied = 8192;
/// The time after work in which a proxy looks for requests of kernels without a rest, and the length of a later rest.
constexpr std::chrono::milliseconds kBusy{2};
constexpr std::chrono::microseconds kNap{50};

}  // namespace

Proxy::Proxy(ProxySetup setup, std::unique_ptr<Endpoint> endpoint, Size bytes)
    : setup_(std::move(setup)),
      keys_(setup_.secret, setup_.seal, setup_.place.pes, setup_.place.me),
      endpoint_(std::move(endpoint)),
      piece_(endpoint_->most_bytes() - kHeaderBytes),
      bytes_(bytes),
      peers_(static_cast<std::size_t>(setup_.place.pes)),
      heartbeats_(setup_.heartbeat
                      ? std::optional<Heartbeats>(std::in_place, *setup_.heartbeat, setup_.place.pes, setup_.place.me)
                      : std::nullopt),
      mailbox_(setup_.place, [this] { endpoint_->wake(); }),
      thread_([this] { run(); }) {}

Proxy::~Proxy() {
  is_stopping_ = true;
  endpoint_->wake();
  thread_.join();
}

/// Posts a request for the host program, and waits until it is answered or the world is over.
void Proxy::carry_out_now(const Request& request) {
  std::uint64_t number = 0;
  while (!setup_.is_over() && (number == 0 || !mailbox_.is_answered(number))) {
    if (number == 0) number = mailbox_.try_post(request);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Proxy::settle() {
  const bool is_quiet = mailbox_.is_quiet() && setup_.access->kernel_requests() == nullptr;
  if (!is_quiet) carry_out_now({.kind = Request::Kind::kFlush});
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

void Proxy::run() {
  try {
    setup_.access->start();
    if (heartbeats_) greet();
    while (!is_stopping_) {
      const bool has_moved = step();
      if (heartbeats_) beat();
      if (!has_moved) rest(current_ || outgoing_.size() > under_way_ || !answers_.empty());
    }
  } catch (...) {
    setup_.on_error(std::current_exception());
  }
}

/// Waits for something to do. A message that found no room may find some soon, and nothing has to announce it. Nor does
/// a kernel announce its requests, so the proxy looks for them: all the time while there is work, and seldom later.
void Proxy::rest(bool is_held_up) {
  if (setup_.access->kernel_requests() == nullptr) return endpoint_->wait(is_held_up ? 1 : kLongestWaitMs);
  if (std::chrono::steady_clock::now() - moved_ < kBusy)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(kNap);
}

/// Returns whether there was anything to do.
bool Proxy::step() {
  constexpr int most_messages = 64;
  bool has_moved = false;
  for (int i = 0; i < most_messages && endpoint_->poll([this](View message) { receive(message); }); ++i)
    has_moved = true;
  has_moved |= send_answers();
  has_moved |= send_requests();
  if (has_moved && setup_.access->kernel_requests() != nullptr) moved_ = std::chrono::steady_clock::now();
  return has_moved;
}

/// Sends a first message to each PE of other nodes, so that all learn whether they reach each other.
void Proxy::greet() {
  for (int pe = 0; pe < setup_.place.pes; ++pe) {
    if (setup_.place.is_near(pe)) continue;
    Answer greeting;
    greeting.header.kind = Kind::kBeat;
    greeting.header.to = pe;
    answers_.push_back(std::move(greeting));
  }
}

void Proxy::beat() {
  const auto now = Heartbeats::Clock::now();
  if (const auto look = heartbeats_->due(now)) {
    for (int pe = 0; pe < setup_.place.pes; ++pe) {
      if (setup_.place.is_near(pe)) continue;
      Header header;
      header.kind = Kind::kBeat;
      header.to = pe;
      header.value = *look;
      if (heartbeats_->is_rail_peer(pe)) send(header, {});  // a later one will do where there is no room
      if (setup_.heartbeat->news) tell_news(pe, *look);
    }
  }
  if (!setup_.is_over()) heartbeats_->watch(now);
}

void Proxy::tell_news(int pe, std::uint64_t look) {
  Answer news;
  news.own = setup_.heartbeat->news(pe, static_cast<std::size_t>(piece_));
  if (news.own.empty()) return;
  news.header.kind = Kind::kBeat;
  news.header.to = pe;
  news.header.bytes = static_cast<Size>(news.own.size());
  news.header.value = look;
  answers_.push_back(std::move(news));
}

bool Proxy::send_answers() {
  bool has_moved = false;
  for (; !answers_.empty(); answers_.pop_front()) {
    Answer& next = answers_.front();
    if (!is_ready(next) || !send(next.header, next.data != nullptr ? data_of(next.reading) : next.own)) break;
    if (next.reading) setup_.access->release(*next.reading);
    has_moved = true;
  }
  return has_moved;
}

/// Begins to read the answer's data where there is room for it.
bool Proxy::is_ready(Answer& answer) {
  if (!setup_.access->are_written(answer.writes)) return false;
  if (answer.data == nullptr || answer.header.bytes == 0) return true;
  if (!answer.reading && setup_.access->has_room())
    answer.reading = setup_.access->read(answer.data, answer.header.bytes);
  return answer.reading && setup_.access->is_read(*answer.reading);
}

/// Returns whether there is a request. Requests that kernels posted before the host's go first: a flush of the host
/// follows the work that it has waited for.
bool Proxy::take_request() {
  const bool has_request = mailbox_.has_request();
  const Counts before = taken_;
  if (KernelRequests* const kernels = setup_.access->kernel_requests()) {
    if (const auto next = kernels->take()) {
      ++taken_.kernels;
      current_ = Current{*next, ++taken_requests_, before};
      return true;
    }
  }
  if (!has_request) return false;
  current_ = Current{};
  taken_.mailbox = mailbox_.take(current_->request);
  current_->number = ++taken_requests_;
  current_->before = before;
  return true;
}

/// Makes messages of requests, and sends those whose data is there. Data of several messages is read meanwhile, so a
/// copy that takes its time holds up no other. Returns whether anything was begun or sent.
bool Proxy::send_requests() {
  if (setup_.is_over()) return drop_requests();
  bool has_moved = false;
  while (outgoing_.size() < kMostOutgoing && (current_ || take_request()) && begin_message()) has_moved = true;
  for (; under_way_ < outgoing_.size() && set_out(outgoing_[under_way_]); ++under_way_) has_moved = true;
  return note_sent() || has_moved;
}

/// Sends a message if its data is there. Data that stays is not copied, unless it is encrypted. Returns false if the
/// message has to wait.
bool Proxy::set_out(Outgoing& message) {
  if (message.reading && !setup_.access->is_read(*message.reading)) return false;
  const View data = data_of(message.reading);
  const bool is_uncopied =
      message.reading && message.reading->stays && data.size() >= kLeastUncopied && keys_.seal_choice() != Seal::kAll;
  if (is_uncopied) return send(message.header, data, [&message] { message.is_sent = true; });
  message.is_sent = send(message.header, data);
  return message.is_sent;
}

/// Notes the requests whose data is sent, with that of all before. Returns whether there are more than before.
bool Proxy::note_sent() {
  bool has_moved = false;
  for (; under_way_ > 0 && outgoing_.front().is_sent; --under_way_) {
    const Outgoing& next = outgoing_.front();
    if (next.reading) setup_.access->release(*next.reading);
    const auto ends = next.ends;
    outgoing_.pop_front();
    has_moved = true;
    if (!ends) continue;
    sent_ = *ends;
    note();
  }
  return has_moved;
}

/// Notes all requests as sent, since the world is over. Returns whether there were any. Messages under way keep their
/// data, which may change now.
bool Proxy::drop_requests() {
  bool has_moved = outgoing_.size() > under_way_;
  for (; outgoing_.size() > under_way_; outgoing_.pop_back())
    if (outgoing_.back().reading) setup_.access->release(*outgoing_.back().reading);
  for (Outgoing& message : outgoing_) has_moved |= std::exchange(message.ends, std::nullopt).has_value();
  for (; current_ || take_request(); current_.reset()) has_moved = true;
  sent_ = taken_;
  if (has_moved) note();
  return has_moved;
}

/// Makes the current request's next message. Returns false if its data finds no room.
bool Proxy::begin_message() {
  const Request::Kind kind = current_->request.kind;
  if (kind == Request::Kind::kPut && current_->request.bytes > 0 && !setup_.access->has_room()) return false;
  const bool is_last = kind == Request::Kind::kPut   ? begin_put(*current_)
                       : kind == Request::Kind::kGet ? begin_get(*current_)
                                                     : begin_flush(*current_);
  if (!is_last) return true;
  current_.reset();
  if (!outgoing_.empty()) {
    outgoing_.back().ends = taken_;
    return true;
  }
  sent_ = taken_;
  note();
  return true;
}

/// Several messages of a put are under way at a time: one is read while another is sent and a third is written. Small
/// ones cost too much each.
Size Proxy::piece_of(Size bytes) const {
  constexpr Size messages = 4;
  constexpr Size least = Size{64} << 10;
  return std::clamp(round_up(bytes / messages, Size{4096}), std::min(least, piece_), piece_);
}

/// Returns whether it was the request's last message.
bool Proxy::begin_put(Current& current) {
  const Request& request = current.request;
  Header header;
  header.kind = Kind::kPut;
  header.to = request.pe;
  header.bytes = std::min(piece_of(request.bytes), request.bytes - current.done);
  header.offset = request.offset + current.done;
  header.has_word = request.has_word && current.done + header.bytes == request.bytes;
  header.precedes_word = request.has_word && !header.has_word;
  if (header.has_word) {
    header.op = request.op;
    header.word = request.word;
    header.value = request.value;
  }
  outgoing_.push_back({header});
  if (header.bytes > 0) {
    const auto* const from = static_cast<const std::byte*>(request.local) + current.done;
    outgoing_.back().reading = setup_.access->read(from, header.bytes);
  }
  current.done += header.bytes;
  peer(request.pe).is_unflushed = true;
  return current.done >= request.bytes;
}

bool Proxy::begin_get(Current& current) {
  const Request& request = current.request;
  if (request.bytes == 0) return true;
  Header header;
  header.kind = Kind::kGet;
  header.to = request.pe;
  header.bytes = std::min(piece_, request.bytes - current.done);
  header.offset = request.offset + current.done;
  ask(header, static_cast<std::byte*>(request.local) + current.done);
  current.done += header.bytes;
  return current.done >= request.bytes;
}

bool Proxy::begin_flush(Current& current) {
  while (current.next_peer < setup_.place.pes && !peer(current.next_peer).is_unflushed) ++current.next_peer;
  if (current.next_peer == setup_.place.pes) {
    flushes_.emplace(current.number, taken_);
    return true;
  }
  Header header;
  header.kind = Kind::kFlush;
  header.to = current.next_peer;
  peer(current.next_peer).is_unflushed = false;
  ask(header, nullptr);
  return false;
}

/// Asks a PE for the current request.
void Proxy::ask(Header header, std::byte* to) {
  header.value = ++questions_;
  asked_[questions_] = {to, header.bytes, header.to, current_->number};
  ++open_.try_emplace(current_->number, Open{0, current_->before}).first->second.answers;
  outgoing_.push_back({header});
}

/// Returns false if there is no room.
bool Proxy::send(Header header, View payload, const OnSent& sent) {
  header.from = setup_.place.me;
  header.number = peer(header.to).sent + 1;
  if (keys_.seal_choice() == Seal::kAll) {
    sealed_.assign(payload.begin(), payload.end());
    payload = sealed_;
  }
  const auto sealed = keys_.seal(header, sealed_);
  if (!endpoint_->send(header.to, sealed, payload, sent)) return false;
  ++peer(header.to).sent;
  return true;
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
