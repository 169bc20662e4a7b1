#include "runtime/mismatch_detector.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem {

namespace {

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

MismatchDetector::MismatchDetector(int me, Records records, std::function<void(const std::string&)> report)
    : me_(me), records_(std::move(records)), report_(std::move(report)) {}

std::size_t MismatchDetector::add(const std::string& what, const Team& team) { return add_order(what, team, nullptr); }

std::size_t MismatchDetector::add_order(const std::string& what, const Team& team, Difference difference) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = plans_.size();
  PlanCalls* const own = records_(me_, number);
  const std::string whole = fmt::format("{} on PEs {} + {} * 0..{}", what, team.first, team.stride, team.size - 1);
  plans_.push_back({number, team, call_signature(whole), own, std::move(difference)});
  if (own == nullptr) return number;
  const std::size_t kept = std::min(what.size(), own->what.size() - 1);
  std::copy_n(what.begin(), kept, own->what.begin());
  return number;
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
  // The first PE compares with all others, the others with the first. Any difference is then found by one of the two.
  if (plan.team.me > 0) return compare(plan, number, call, plan.team.first);
  for (int i = 1; i < plan.team.size; ++i) compare(plan, number, call, plan.team.world_pe(i));
}

void MismatchDetector::take_back(std::size_t number) {
  const std::lock_guard lock(mutex_);
  const Plan& plan = plans_.at(number);
  if (plan.own == nullptr || plan.team.me < 0) return;
  const std::uint64_t call = plan.own->made.load();
  plan.own->calls[call % PlanCalls::kRemembered].stamp.store(0);
  plan.own->made.store(call - 1);
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
  const std::string text =
      fmt::format("call {} of {}: {}", number, plan.difference ? text_of(*plan.own) : "a plan", what);
  if (report_) report_(text);
  throw InvalidArgument(fmt::format("PE {}: {}", me_, text));
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
