#include "wire/proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "base/outside_order.h"
#include "tandem/error.h"

namespace tandem::wire {

namespace {

constexpr int kLongestWaitMs = 25;
/// The time after work in which a proxy looks for letters of kernels without a rest, and the length of a later rest.
constexpr std::chrono::milliseconds kBusy{2};
constexpr std::chrono::microseconds kNap{50};
/// Messages that may arrive before one that they have to follow. An honest PE comes nowhere near.
constexpr std::size_t kMostEarly = std::size_t{1} << 16;

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

/// Posts a letter for the host program, and waits until it is answered or the world is over.
void Proxy::carry_out_now(const Letter& letter) {
  std::uint64_t number = 0;
  while (!setup_.is_over() && (number == 0 || !mailbox_.is_answered(number))) {
    if (number == 0) number = mailbox_.try_post(letter);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Proxy::settle() {
  const bool is_quiet = mailbox_.is_quiet() && setup_.access->kernel_letters() == nullptr;
  if (!is_quiet) carry_out_now({.kind = Letter::Kind::kFlush});
}

std::vector<int> Proxy::unheard() const {
  std::vector<int> pes;
  for (int pe = 0; pe < setup_.place.pes; ++pe)
    if (!setup_.place.is_near(pe) && !peers_[static_cast<std::size_t>(pe)].was_heard.load(std::memory_order_relaxed))
      pes.push_back(pe);
  return pes;
}

Letters Proxy::letters() const {
  const KernelLetters* const kernels = setup_.access->kernel_letters();
  return kernels != nullptr ? kernels->letters() : mailbox_.letters();
}

bool Proxy::copy(void* to, const void* from, Size bytes) {
  const auto source = mailbox_.far_spot(from);
  const auto spot = source ? source : mailbox_.far_spot(to);
  if (!spot) return false;
  Letter letter;
  letter.kind = source ? Letter::Kind::kGet : Letter::Kind::kPut;
  letter.pe = spot->pe;
  letter.local = source ? to : const_cast<void*>(from);
  letter.offset = spot->offset;
  letter.bytes = bytes;
  carry_out_now(letter);
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
      if (!has_moved) rest(current_ || !answers_.empty());
    }
  } catch (...) {
    setup_.on_error(std::current_exception());
  }
}

/// Waits for something to do. A message that found no room may find some soon, and nothing has to announce it. Nor does
/// a kernel announce its letters, so the proxy looks for them: all the time while there is work, and seldom later.
void Proxy::rest(bool is_held_up) {
  if (setup_.access->kernel_letters() == nullptr) return endpoint_->wait(is_held_up ? 1 : kLongestWaitMs);
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
  has_moved |= send_letter();
  if (has_moved && setup_.access->kernel_letters() != nullptr) moved_ = std::chrono::steady_clock::now();
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
    const Answer& next = answers_.front();
    if (!send(next.header, next.data != nullptr ? setup_.access->read(next.data, next.header.bytes) : next.own)) break;
    has_moved = true;
  }
  return has_moved;
}

/// Returns whether there is a letter. Letters that kernels posted before the host's go first: a flush of the host
/// follows the work that it has waited for.
bool Proxy::take_letter() {
  const bool has_letter = mailbox_.has_letter();
  if (KernelLetters* const kernels = setup_.access->kernel_letters()) {
    if (const auto next = kernels->take()) {
      ++taken_.kernels;
      current_ = Current{*next, ++taken_letters_};
      return true;
    }
  }
  if (!has_letter) return false;
  current_ = Current{};
  taken_.mailbox = mailbox_.take(current_->letter);
  current_->number = ++taken_letters_;
  return true;
}

/// Sends the next letter, or as much of it as there is room for. Returns whether anything was sent.
bool Proxy::send_letter() {
  if (!current_ && !take_letter()) return false;
  const Current before = *current_;
  const bool is_sent = setup_.is_over() || (current_->letter.kind == Letter::Kind::kPut   ? send_put(*current_)
                                            : current_->letter.kind == Letter::Kind::kGet ? send_get(*current_)
                                                                                          : send_flush(*current_));
  if (!is_sent) return current_->done != before.done || current_->next_peer != before.next_peer;
  sent_ = taken_;
  current_.reset();
  note();
  return true;
}

bool Proxy::send_put(Current& current) {
  const Letter& letter = current.letter;
  do {
    Header header;
    header.kind = Kind::kPut;
    header.to = letter.pe;
    header.bytes = std::min(piece_, letter.bytes - current.done);
    header.offset = letter.offset + current.done;
    header.has_word = letter.has_word && current.done + header.bytes == letter.bytes;
    if (header.has_word) {
      header.op = letter.op;
      header.word = letter.word;
      header.value = letter.value;
    }
    const auto* const from = static_cast<const std::byte*>(letter.local) + current.done;
    if (!send(header, header.bytes == 0 ? View{} : setup_.access->read(from, header.bytes))) return false;
    current.done += header.bytes;
  } while (current.done < letter.bytes);
  peer(letter.pe).is_unflushed = true;
  return true;
}

bool Proxy::send_get(Current& current) {
  const Letter& letter = current.letter;
  while (current.done < letter.bytes) {
    Header header;
    header.kind = Kind::kGet;
    header.to = letter.pe;
    header.bytes = std::min(piece_, letter.bytes - current.done);
    header.offset = letter.offset + current.done;
    header.value = questions_ + 1;
    if (!send(header, {})) return false;
    asked_[++questions_] = {static_cast<std::byte*>(letter.local) + current.done, header.bytes, letter.pe,
                            current.number};
    ++open_.try_emplace(current.number, Open{0, sent_}).first->second.answers;
    current.done += header.bytes;
  }
  return true;
}

bool Proxy::send_flush(Current& current) {
  for (int& pe = current.next_peer; pe < setup_.place.pes; ++pe) {
    if (!peer(pe).is_unflushed) continue;
    Header header;
    header.kind = Kind::kFlush;
    header.to = pe;
    header.value = questions_ + 1;
    if (!send(header, {})) return false;
    asked_[++questions_] = {nullptr, 0, pe, current.number};
    ++open_.try_emplace(current.number, Open{0, sent_}).first->second.answers;
    peer(pe).is_unflushed = false;
  }
  flushes_.emplace(current.number, taken_);
  return true;
}

/// Returns false if there is no room.
bool Proxy::send(Header header, View payload) {
  header.from = setup_.place.me;
  header.number = peer(header.to).sent + 1;
  if (keys_.seal_choice() == Seal::kAll) {
    sealed_.assign(payload.begin(), payload.end());
    payload = sealed_;
  }
  const auto sealed = keys_.seal(header, sealed_);
  if (!endpoint_->send(header.to, sealed, payload)) return false;
  ++peer(header.to).sent;
  return true;
}

void Proxy::receive(View message) {
  const auto header = keys_.open(message, plain_);
  if (!header) {
    if (!has_dropped_)
      log_line(LogLevel::kWarn,
               [&] { return fmt::format("PE {} drops messages that no PE has sent", setup_.place.me); });
    has_dropped_ = true;
    return;
  }
  Peer& from = peer(header->from);
  if (heartbeats_) heartbeats_->hear(header->from, Heartbeats::Clock::now());
  from.was_heard.store(true, std::memory_order_relaxed);
  if (header->number <= from.received) return;
  if (header->number > from.received + 1) {
    if (from.early.size() >= kMostEarly)
      throw RuntimeFailure(fmt::format("message {} of PE {} has not arrived, {} later ones have", from.received + 1,
                                       header->from, from.early.size()));
    from.early.emplace(header->number, Bytes(message.begin(), message.end()));
    return;
  }
  carry_out_next(from, *header, message);
  for (auto next = from.early.begin(); next != from.early.end() && next->first == from.received + 1;
       next = from.early.begin()) {
    const Bytes waiting = std::move(next->second);
    from.early.erase(next);
    carry_out_next(from, *keys_.open(waiting, plain_), waiting);
  }
}

/// Carries out the message of which `plain_` is the decrypted data.
void Proxy::carry_out_next(Peer& from, const Header& header, View message) {
  const View data = message.subspan(static_cast<std::size_t>(kHeaderBytes));
  carry_out(header, keys_.seal_choice() == Seal::kAll ? View(plain_) : data);
  from.received = header.number;
}

void Proxy::carry_out(const Header& header, View data) {
  if (setup_.is_over()) return;
  switch (header.kind) {
    case Kind::kPut:
      return put(header, data);
    case Kind::kGet:
      return answer_get(header);
    case Kind::kFlush: {
      setup_.access->finish();
      Answer answer;
      answer.header.kind = Kind::kFlushed;
      answer.header.to = header.from;
      answer.header.value = header.value;
      answers_.push_back(answer);
      return;
    }
    case Kind::kGot:
    case Kind::kFlushed:
      return take_answer(header, data);
    case Kind::kBeat:
      if (!heartbeats_) return;
      heartbeats_->take_look(header.from, header.value);
      if (!data.empty() && setup_.heartbeat->on_news) setup_.heartbeat->on_news(header.from, data);
      return;
  }
}

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
  if (!header.has_word) return setup_.access->write_packets(to, data);
  if (!data.empty()) setup_.access->write(to, data);
  change_word(header);
}

void Proxy::change_word(const Header& header) {
  setup_.access->change(*reinterpret_cast<Signal*>(own() + header.word), header.op, header.value);
  setup_.ring();
}

void Proxy::answer_get(const Header& header) {
  require_within(header, header.offset, header.bytes);
  if (header.bytes > piece_)
    throw InvalidArgument(
        fmt::format("PE {} asks for {} bytes at once, allowed are {}", header.from, header.bytes, piece_));
  Answer answer;
  answer.header.kind = Kind::kGot;
  answer.header.to = header.from;
  answer.header.bytes = header.bytes;
  answer.header.value = header.value;
  answer.data = own() + header.offset;
  answers_.push_back(answer);
}

void Proxy::take_answer(const Header& header, View data) {
  const auto found = asked_.find(header.value);
  if (found == asked_.end() || found->second.pe != header.from || found->second.bytes != header.bytes)
    throw RuntimeFailure(fmt::format("PE {} answers what PE {} has not asked", header.from, setup_.place.me));
  if (!data.empty()) {
    setup_.access->write(found->second.to, data);
    setup_.access->finish();
  }
  const std::uint64_t letter = found->second.letter;
  asked_.erase(found);
  if (--open_.at(letter).answers > 0) return;
  open_.erase(letter);
  note();
}

/// Letters before the first one that waits for an answer are done.
void Proxy::note() {
  const bool all_answered = open_.empty();
  const Counts answered = all_answered ? sent_ : open_.begin()->second.before;
  for (auto next = flushes_.begin(); next != flushes_.end() && (all_answered || next->first < open_.begin()->first);
       next = flushes_.erase(next))
    flushed_ = next->second.mailbox;
  mailbox_.note(sent_.mailbox, answered.mailbox, flushed_);
  if (KernelLetters* const kernels = setup_.access->kernel_letters()) kernels->note(sent_.kernels, answered.kernels);
  setup_.ring();
}

}  // namespace tandem::wire
