#include "runtime/mismatch_detector.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem {

namespace {

/// Bytes of a call in news.
constexpr std::size_t kCallBytes = 5 * sizeof(std::uint64_t);

/// Distinguishes a plan from none, whatever its hash.
constexpr std::uint64_t kMade = std::uint64_t{1} << 32;

std::uint64_t stamp_of(std::uint64_t call, std::uint32_t hash) { return call << 32 | hash; }

/// Text written by another process may lack its terminating zero.
std::string text_of(const PlanCalls& plan) {
  return {plan.what.data(),
          static_cast<std::size_t>(std::find(plan.what.begin(), plan.what.end(), '\0') - plan.what.begin())};
}

}  // namespace

std::uint32_t call_signature(const std::string& text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

MismatchDetector::MismatchDetector(int me, Records records, std::function<void(const std::string&)> report,
                                   std::function<bool(int)> is_near)
    : me_(me), records_(std::move(records)), report_(std::move(report)), is_near_(std::move(is_near)) {}

std::size_t MismatchDetector::add(const std::string& what, const Team& team) { return add_order(what, team, nullptr); }

std::size_t MismatchDetector::add_order(const std::string& what, const Team& team, Difference difference) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = plans_.size();
  PlanCalls* const own = records_(me_, number);
  const std::string whole = fmt::format("{} on PEs {} + {} * 0..{}", what, team.first, team.stride, team.size - 1);
  plans_.push_back({number, team, call_signature(whole), own, std::move(difference)});
  const Plan& plan = plans_.back();
  if (own == nullptr) return number;
  publish(plan, what);
  if (!plan.difference && team.me >= 0) for_compared(plan, [&](int other) { compare_plan(plan, other); });
  return number;
}

/// A PE publishes its plan before it reads the others', in one order for all PEs.
void MismatchDetector::publish(const Plan& plan, const std::string& what) const {
  const std::size_t kept = std::min(what.size(), plan.own->what.size() - 1);
  std::copy_n(what.begin(), kept, plan.own->what.begin());
  plan.own->plan.store(kMade | plan.hash);
}

/// The first PE compares with all others, the others with the first. Any difference is then found by one of the two.
/// A PE that is late finds it late, so near PEs are compared with each other, too.
template <class Compare>
void MismatchDetector::for_compared(const Plan& plan, const Compare& compare) const {
  for (int i = 0; i < plan.team.size; ++i) {
    const int other = plan.team.world_pe(i);
    if (other != me_ && (plan.team.me == 0 || i == 0 || (is_near_ && is_near_(other)))) compare(other);
  }
}

void MismatchDetector::compare_plan(const Plan& plan, int other) const {
  const PlanCalls& found = *records_(other, plan.number);
  const std::uint64_t its = found.plan.load();
  if (its == 0 || its == (kMade | plan.hash)) return;
  const std::string own_text = text_of(*plan.own), its_text = text_of(found);
  refuse(fmt::format("plans: PE {} makes {}, PE {} makes {}{}; all PEs must make the same plans in the same order", me_,
                     own_text, other, its_text,
                     own_text == its_text ? " (with other options, or on another team)" : ""));
}

void MismatchDetector::refuse(const std::string& text) const {
  if (report_) report_(text);
  throw InvalidArgument(fmt::format("PE {}: {}", me_, text));
}

void MismatchDetector::note(std::size_t number, Size count) {
  const std::lock_guard lock(mutex_);
  const Plan& plan = plans_.at(number);
  note_call(plan, {plan.hash, count});
}

void MismatchDetector::note(std::size_t number, const RecordedCall& call) {
  const std::lock_guard lock(mutex_);
  note_call(plans_.at(number), call);
}

void MismatchDetector::note_call(const Plan& plan, const RecordedCall& call) {
  if (plan.own == nullptr || plan.team.me < 0) return;
  const std::uint64_t number = plan.own->made.load() + 1;
  PlanCalls::Call& own = plan.own->calls[number % PlanCalls::kRemembered];
  own.stamp.store(0);
  own.count.store(call.count);
  for (std::size_t i = 0; i < own.places.size(); ++i) own.places[i].store(call.places[i]);
  // A PE publishes its call before it reads the others', in one order for all PEs. So at least one of two PEs
  // sees both calls.
  own.stamp.store(stamp_of(number, call.what));
  plan.own->made.store(number);
  ++changes_;
  for_compared(plan, [&](int other) { compare(plan, number, call, other); });
}

void MismatchDetector::take_back(std::size_t number) {
  const std::lock_guard lock(mutex_);
  const Plan& plan = plans_.at(number);
  if (plan.own == nullptr || plan.team.me < 0) return;
  const std::uint64_t call = plan.own->made.load();
  plan.own->calls[call % PlanCalls::kRemembered].stamp.store(0);
  plan.own->made.store(call - 1);
  ++changes_;
  for (auto& [key, delivered] : delivered_)
    if (key.second == number) delivered = std::min(delivered, call - 1);
}

void MismatchDetector::forget(std::size_t number) {
  const std::lock_guard lock(mutex_);
  plans_.at(number).own = nullptr;
}

bool MismatchDetector::compares(const Plan& plan, int other) const {
  const Team& team = plan.team;
  if (plan.own == nullptr || team.me < 0 || other == me_) return false;
  const int offset = other - team.first;
  const bool is_member = offset >= 0 && offset % team.stride == 0 && offset / team.stride < team.size;
  return is_member && (team.me == 0 || other == team.first);
}

Bytes MismatchDetector::news_for(int pe, std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (delivered_changes_[pe] == changes_) return {};
  Writer news;
  constexpr std::size_t heading = sizeof(PlanCalls::what) + 16;
  for (const Plan& plan : plans_) {
    if (!compares(plan, pe)) continue;
    std::uint64_t& delivered = delivered_[{pe, plan.number}];
    const std::uint64_t made = plan.own->made.load();
    // Older calls are no longer there.
    delivered = std::max(delivered, made > PlanCalls::kRemembered ? made - PlanCalls::kRemembered : 0);
    if (delivered == made) continue;
    if (news.result().size() + heading + kCallBytes > most) return news.result();
    const std::uint64_t room = (most - news.result().size() - heading) / kCallBytes;
    const std::uint64_t last = std::min(made, delivered + room);
    news.u32(static_cast<std::uint32_t>(plan.number))
        .text(text_of(*plan.own))
        .u32(static_cast<std::uint32_t>(last - delivered));
    while (delivered < last) {
      const PlanCalls::Call& call = plan.own->calls[++delivered % PlanCalls::kRemembered];
      news.u64(delivered).u64(call.stamp.load()).u64(static_cast<std::uint64_t>(call.count.load()));
      for (const auto& place : call.places) news.u64(place.load());
    }
    if (last < made) return news.result();
  }
  delivered_changes_[pe] = changes_;
  return news.result();
}

void MismatchDetector::take(int pe, View news) {
  const std::lock_guard lock(mutex_);
  for (Reader reader(news); !reader.is_at_end();) {
    const std::size_t number = reader.u32();
    const std::string what = reader.text();
    PlanCalls* const its = records_(pe, number);
    if (its == nullptr || what.size() >= its->what.size()) throw BadMessage("calls that no PE makes");
    std::copy(what.begin(), what.end(), its->what.begin());
    for (std::uint32_t calls = reader.u32(); calls > 0; --calls) take_call(number, *its, reader, pe);
  }
}

void MismatchDetector::take_call(std::size_t number, PlanCalls& its, Reader& reader, int from) {
  const std::uint64_t call = reader.u64();
  PlanCalls::Call& entry = its.calls[call % PlanCalls::kRemembered];
  const std::uint64_t stamp = reader.u64();
  entry.stamp.store(0);
  entry.count.store(static_cast<Size>(reader.u64()));
  for (auto& place : entry.places) place.store(reader.u64());
  entry.stamp.store(stamp);
  its.made.store(call);
  if (number >= plans_.size() || !compares(plans_[number], from)) return;
  const Plan& plan = plans_[number];
  const PlanCalls::Call& made = plan.own->calls[call % PlanCalls::kRemembered];
  const std::uint64_t own_stamp = made.stamp.load();
  if (own_stamp >> 32 != (call & 0xFFFF'FFFF) || own_stamp == 0) return;
  const RecordedCall own{static_cast<std::uint32_t>(own_stamp), made.count.load(), {made.places[0], made.places[1]}};
  // Places are compared with the tables of the host program, on its thread, at its next call.
  if (plan.difference && own_stamp == stamp && own.count == entry.count.load()) return;
  compare(plan, call, own, from);
}

void MismatchDetector::compare(const Plan& plan, std::uint64_t number, const RecordedCall& call, int other) const {
  const PlanCalls::Call& found = records_(other, plan.number)->calls[number % PlanCalls::kRemembered];
  const std::uint64_t stamp = found.stamp.load();
  RecordedCall its{static_cast<std::uint32_t>(stamp), found.count.load()};
  for (std::size_t i = 0; i < its.places.size(); ++i) its.places[i] = found.places[i].load();
  // The entry does not exist yet, was overwritten, or is being written (0, which may also be a real stamp). In these
  // cases only a later call may find a difference. The stamp holds half of the number, which wraps after 2^32 calls.
  if (stamp == 0 || stamp >> 32 != (number & 0xFFFF'FFFF) || found.stamp.load() != stamp || its == call) return;
  const std::string what = difference(plan, call, its, other);
  if (what.empty()) return;
  refuse(fmt::format("call {} of {}: {}", number, plan.difference ? text_of(*plan.own) : "a plan", what));
}

std::string MismatchDetector::difference(const Plan& plan, const RecordedCall& call, const RecordedCall& its,
                                         int other) const {
  if (plan.difference) return plan.difference(call, its, other);
  const std::string own_text = text_of(*plan.own);
  const std::string its_text = text_of(*records_(other, plan.number));
  return fmt::format(
      "PE {} calls {} with count {}, PE {} {} with count {}{}; all PEs must make the same calls in the same order", me_,
      own_text, call.count, other, its_text, its.count,
      call.what == its.what || own_text != its_text ? "" : " (on another team)");
}

std::string MismatchDetector::apart() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Plan& plan : plans_) {
    if (plan.own == nullptr || plan.team.me < 0) continue;
    std::vector<std::uint64_t> made;
    made.reserve(static_cast<std::size_t>(plan.team.size));
    for (int i = 0; i < plan.team.size; ++i) made.push_back(records_(plan.team.world_pe(i), plan.number)->made.load());
    const auto least = std::min_element(made.begin(), made.end());
    const auto most = std::max_element(made.begin(), made.end());
    if (*least == *most) continue;
    const auto member = [&](auto at) { return plan.team.world_pe(static_cast<int>(at - made.begin())); };
    text += fmt::format("; so far PE {} has called {} {} times, PE {} {} times", member(least), text_of(*plan.own),
                        *least, member(most), *most);
  }
  return text;
}

PlanCalls* CallRecords::of(int pe, std::size_t number) {
  const std::lock_guard lock(mutex_);
  auto& plans = plans_[static_cast<std::size_t>(pe)];
  while (plans.size() <= number) plans.push_back(std::make_unique<PlanCalls>());
  return plans[number].get();
}

}  // namespace tandem
