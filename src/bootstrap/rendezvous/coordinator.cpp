#include "bootstrap/rendezvous/coordinator.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem::bootstrap {

namespace {

constexpr std::size_t kMostName = 256;

void write_call(Writer& writer, int first, int stride, int size, std::uint64_t number) {
  writer.u32(static_cast<std::uint32_t>(first)).u32(static_cast<std::uint32_t>(stride));
  writer.u32(static_cast<std::uint32_t>(size)).u64(number);
}

template <class Message>
void read_call(Reader& reader, Message& message) {
  const auto field = [&](std::uint32_t most) {
    const std::uint32_t value = reader.u32();
    if (value > most) throw BadMessage("a team that no world has");
    return static_cast<int>(value);
  };
  message.first = field(kMostPes - 1);
  message.stride = field(kMostPes);
  message.size = field(kMostPes);
  message.number = reader.u64();
  if (message.stride < 1 || message.size < 1) throw BadMessage("a team that no world has");
}

}  // namespace

std::string list_of(const std::vector<int>& numbers) {
  constexpr std::size_t most = 16;
  const auto end = numbers.begin() + static_cast<std::ptrdiff_t>(std::min(most, numbers.size()));
  return fmt::format("{}{}", fmt::join(numbers.begin(), end, ", "),
                     numbers.size() > most ? fmt::format(" and {} more", numbers.size() - most) : "");
}

Bytes Contribution::encode() const {
  Writer writer;
  write_call(writer, first, stride, size, number);
  return writer.text(name).u32(timeout_ms).bytes(blob).result();
}

Contribution Contribution::decode(View payload) {
  Reader reader(payload);
  Contribution contribution;
  read_call(reader, contribution);
  contribution.name = reader.text();
  contribution.timeout_ms = reader.u32();
  const View blob = reader.bytes();
  reader.end();
  if (contribution.name.size() > kMostName || blob.size() > kMostContribution)
    throw BadMessage("an oversized contribution");
  contribution.blob.assign(blob.begin(), blob.end());
  return contribution;
}

Bytes Gathered::encode() const {
  Writer writer;
  write_call(writer, first, stride, size, number);
  for (const Bytes& blob : blobs) writer.bytes(blob);
  return writer.result();
}

Gathered Gathered::decode(View payload) {
  Reader reader(payload);
  Gathered gathered;
  read_call(reader, gathered);
  for (int i = 0; i < gathered.size; ++i) {
    const View blob = reader.bytes();
    gathered.blobs.emplace_back(blob.begin(), blob.end());
  }
  reader.end();
  return gathered;
}

void Coordinator::join(int pe, int size, const std::string& host) {
  if (failure_) failure_->raise();
  if (size < 1 || size > kMostPes || pe < 0 || pe >= size)
    throw InvalidArgument(
        fmt::format("PE {} of {} given, allowed are 0 to size - 1 of at most {}", pe, size, kMostPes));
  if (came_.count(pe) != 0) {
    refused_[pe] = "came twice";
    throw InvalidArgument(fmt::format("PE {} of {} has joined twice: another process is that PE already", pe, size));
  }
  if (size_ != 0 && size != size_) {
    const std::string text = fmt::format("the PEs do not agree on the size of their world: PE {} has {}, PE {} has {}",
                                         said_by_, size_, pe, size);
    fail_all({FailureKind::kInvalidArgument, text});
    throw InvalidArgument(text);
  }
  if (size_ == 0) said_by_ = pe;
  size_ = size;
  came_[pe] = State::kHere;
  hosts_[pe] = host;
}

/// Returns "PE 1 (host b)", or "PE 1" if all PEs are on one host.
std::string Coordinator::name_of(int pe) const {
  const std::string& host = hosts_.at(pe);
  const bool is_alone = std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& one) { return one.second == host; });
  return is_alone || host.empty() ? fmt::format("PE {}", pe) : fmt::format("PE {} (host {})", pe, host);
}

void Coordinator::contribute(int pe, Contribution contribution) {
  if (failure_) return;  // the member has been or will be notified
  const Contribution& c = contribution;
  const int offset = pe - c.first;
  if (c.first + (c.size - 1) * c.stride >= size_ || offset < 0 || offset % c.stride != 0 || offset / c.stride >= c.size)
    throw BadMessage("a team that is not the sender's");
  const Call call{c.first, c.stride, c.size, c.number};
  const auto [at, is_new] = pending_.try_emplace(call);
  Pending& pending = at->second;
  if (is_new) {
    pending.name = c.name;
    pending.first_caller = pe;
    pending.seconds = c.timeout_ms * 1e-3;
    pending.deadline = Deadline(pending.seconds);
    pending.slow.emplace(slow_s_);
  } else if (pending.name != c.name) {
    return fail_all({FailureKind::kInvalidArgument,
                     fmt::format("the PEs call different operations: PE {} is at '{}', PE {} at '{}'",
                                 pending.first_caller, pending.name, pe, c.name)});
  }
  if (!pending.blobs.emplace(pe, std::move(contribution.blob)).second) throw BadMessage("a second contribution");
  if (pending.blobs.size() < static_cast<std::size_t>(c.size)) return check_absent(call, pending);
  Gathered gathered{c.first, c.stride, c.size, c.number, {}};
  for (auto& [from, blob] : pending.blobs) gathered.blobs.push_back(std::move(blob));
  const Bytes payload = gathered.encode();
  for (const auto& [to, blob] : pending.blobs) messages_.push_back({to, Kind::kResult, payload});
  pending_.erase(at);
}

/// Ends the world if the all-gather needs a member that has left.
void Coordinator::check_absent(const Call& call, const Pending& pending) {
  const auto [first, stride, size, number] = call;
  for (int i = 0; i < size; ++i) {
    const auto found = came_.find(first + i * stride);
    if (found != came_.end() && found->second == State::kLeft && pending.blobs.count(found->first) == 0)
      return fail_all({FailureKind::kRuntimeFailure, fmt::format("PE {} has left the world; PE {} is at '{}'",
                                                                 found->first, pending.first_caller, pending.name)});
  }
}

void Coordinator::fail(int pe, Failure failure) {
  failure.text = fmt::format("PE {}: {}", pe, failure.text);
  fail_all(std::move(failure));
}

void Coordinator::leave(int pe) {
  came_[pe] = State::kLeft;
  for (const auto& [call, pending] : std::map(pending_)) check_absent(call, pending);
}

void Coordinator::lose(int pe, const std::string& why) {
  const bool had_left = came_[pe] == State::kLeft;
  came_[pe] = State::kLeft;
  if (!had_left) fail_all({FailureKind::kRuntimeFailure, fmt::format("{} is gone: {}", name_of(pe), why)});
}

void Coordinator::fail_all(Failure failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  pending_.clear();
  for (const auto& [pe, state] : came_)
    if (state == State::kHere) messages_.push_back({pe, Kind::kFailed, failure_->encode()});
}

std::string Coordinator::missing(const Call& call, const Pending& pending) const {
  const auto [first, stride, size, number] = call;
  std::vector<int> never;
  std::vector<int> late;
  std::string refused;
  for (int i = 0; i < size; ++i) {
    const int pe = first + i * stride;
    if (pending.blobs.count(pe) != 0) continue;
    (came_.count(pe) == 0 ? never : late).push_back(pe);
  }
  for (const auto& [pe, why] : refused_) refused += fmt::format("; PE {} {}", pe, why);
  std::string text;
  if (!never.empty()) text += fmt::format("PE {} of {} never came", list_of(never), size_);
  if (!late.empty()) text += fmt::format("{}PE {} did not reach it", text.empty() ? "" : ", ", list_of(late));
  return text + refused;
}

void Coordinator::look_at_clock(const std::string& note) {
  for (const auto& [call, pending] : pending_)
    if (pending.deadline.passed())
      return fail_all({FailureKind::kTimeout, fmt::format("'{}', waited for {} s: {}{}", pending.name, pending.seconds,
                                                          missing(call, pending), note)});
}

std::vector<std::string> Coordinator::take_slow() {
  std::vector<std::string> lines;
  for (auto& [call, pending] : pending_) {
    if (!pending.slow || !pending.slow->passed()) continue;
    pending.slow.reset();
    lines.push_back(fmt::format("PE {} has waited for {} s at '{}': {}", pending.first_caller, slow_s_, pending.name,
                                missing(call, pending)));
  }
  return lines;
}

std::optional<Clock::time_point> Coordinator::next_deadline() const {
  std::optional<Clock::time_point> next;
  const auto take = [&](Clock::time_point at) { next = next ? std::min(*next, at) : at; };
  for (const auto& [call, pending] : pending_) {
    take(pending.deadline.at());
    if (pending.slow) take(pending.slow->at());
  }
  return next;
}

bool Coordinator::over() const {
  return !came_.empty() &&
         std::all_of(came_.begin(), came_.end(), [](const auto& one) { return one.second == State::kLeft; });
}

}  // namespace tandem::bootstrap
