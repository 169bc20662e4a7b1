#include "model/call_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem {

namespace {

std::uint64_t stamp_of(std::uint64_t call, std::uint32_t hash) { return call << 32 | hash; }

/// Text that another process has written may lack its end.
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

CallLog::CallLog(int me, Records records, std::function<void(const std::string&)> tell)
    : me_(me), records_(std::move(records)), tell_(std::move(tell)) {}

std::size_t CallLog::add(const std::string& what, const Team& team) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = plans_.size();
  PlanCalls* const own = records_(me_, number);
  const std::string whole = fmt::format("{} on PEs {} + {} * 0..{}", what, team.first, team.stride, team.size - 1);
  plans_.push_back({number, team, call_signature(whole), own});
  if (own == nullptr) return number;
  const std::size_t kept = std::min(what.size(), own->what.size() - 1);
  std::copy_n(what.begin(), kept, own->what.begin());
  return number;
}

void CallLog::note(std::size_t number, Size count) {
  const std::lock_guard lock(mutex_);
  const Plan& plan = plans_.at(number);
  if (plan.own == nullptr || plan.team.me < 0) return;
  const std::uint64_t call = plan.own->made.load() + 1;
  PlanCalls::Call& own = plan.own->calls[call % PlanCalls::kRemembered];
  own.stamp.store(0);
  own.count.store(count);
  // Written before the others' is read, on all PEs and in one order for all: of two PEs at least one sees both.
  own.stamp.store(stamp_of(call, plan.hash));
  plan.own->made.store(call);
  // The first compares itself with all, the others with the first: who differs from anybody differs from the first, or
  // the other one does.
  if (plan.team.me > 0) return compare(plan, call, count, plan.team.first);
  for (int i = 1; i < plan.team.size; ++i) compare(plan, call, count, plan.team.world_pe(i));
}

void CallLog::take_back(std::size_t number) {
  const std::lock_guard lock(mutex_);
  const Plan& plan = plans_.at(number);
  if (plan.own == nullptr || plan.team.me < 0) return;
  const std::uint64_t call = plan.own->made.load();
  plan.own->calls[call % PlanCalls::kRemembered].stamp.store(0);
  plan.own->made.store(call - 1);
}

void CallLog::compare(const Plan& plan, std::uint64_t call, Size count, int other) const {
  const PlanCalls& its = *records_(other, plan.number);
  const PlanCalls::Call& found = its.calls[call % PlanCalls::kRemembered];
  const std::uint64_t stamp = found.stamp.load();
  const Size its_count = found.count.load();
  // Not there yet, forgotten, or just being written: somebody later compares, or nobody any more.
  if (stamp >> 32 != (call & 0xFFFF'FFFF) || found.stamp.load() != stamp) return;
  const bool same_plan = static_cast<std::uint32_t>(stamp) == plan.hash;
  if (same_plan && its_count == count) return;
  const std::string text = fmt::format(
      "call {} of a plan: PE {} calls {} with count {}, PE {} {} with count {}{}; all PEs must make the "
      "same calls in the same order",
      call, me_, text_of(*plan.own), count, other, text_of(its), its_count,
      same_plan || text_of(*plan.own) != text_of(its) ? "" : " (on another team)");
  if (tell_) tell_(text);
  throw InvalidArgument(fmt::format("PE {}: {}", me_, text));
}

std::string CallLog::apart() const {
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
