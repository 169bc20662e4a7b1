#include "tune/selection.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "model/builtin_files.h"

namespace tandem::tune {
namespace {

/// How far a group's number is from the one asked for: the same, then any, then by ratio.
double distance(double has, double asked) {
  if (has == asked) return 0;
  constexpr double any = 0.01;  // less than any ratio of two different whole numbers below 100
  return has == 0 ? any : std::abs(std::log2(has / asked));
}

/// Half or twice as many PEs are another machine: what one sends to all others grows with their number.
constexpr double kMostDistance = 1;

bool is_within(const SizeChoice& choice, const Query& query) {
  return query.bytes <= choice.up_to_bytes || query.bytes <= choice.up_to_bytes_per_pe * query.pes;
}

bool names(const SelectionTable& table, const std::string& machine) {
  return std::find(table.machines.begin(), table.machines.end(), machine) != table.machines.end();
}

/// From the time at another size; nothing where the table has none, or of another size altogether. From 1 to 64 MB
/// times of `ring` and `two_shot_ll128` grow with the power 0.76 to 0.97 of the size (two H200, 2026-11-22).
std::optional<double> estimated_us(const SizeChoice& choice, Size bytes) {
  constexpr Size most_ratio = 8;
  constexpr double power = 0.85;
  if (!choice.us || !choice.measured_bytes || *choice.measured_bytes <= 0) return std::nullopt;
  if (bytes > *choice.measured_bytes * most_ratio || *choice.measured_bytes > bytes * most_ratio) return std::nullopt;
  return *choice.us * std::pow(static_cast<double>(bytes) / static_cast<double>(*choice.measured_bytes), power);
}

/// Rule 4.
const SizeChoice& with_least_copies(const Group& group, const SizeChoice& first, Size bytes,
                                    const std::function<bool(const std::string&)>& can_run, const Beside& beside) {
  const double copies = beside(first.algorithm);
  const std::optional<double> alone = estimated_us(first, bytes);
  if (copies == 0 || !alone) return first;
  const SizeChoice* best = &first;
  double least = *alone + copies;
  for (const SizeChoice& choice : group.sizes) {
    const std::optional<double> us = estimated_us(choice, bytes);
    if (!us || !can_run(choice.algorithm)) continue;
    const double whole = std::max(*us, *alone) + beside(choice.algorithm);
    if (whole >= least) continue;
    least = whole;
    best = &choice;
  }
  return *best;
}

}  // namespace

const std::vector<SelectionTable>& builtin_tables() {
  static const std::vector<SelectionTable> tables = [] {
    std::vector<SelectionTable> all;
    for (const detail::BuiltinFile& file : detail::builtin_selections())
      all.push_back(parse_selection(file.text, std::string(file.name)));
    return all;
  }();
  return tables;
}

std::optional<SizeChoice> choose(const SelectionTable& table, const Query& query,
                                 const std::function<bool(const std::string&)>& can_run, const Beside& beside) {
  std::vector<const Group*> groups;
  for (const Group& group : table.groups)
    if (group.collective == query.collective && group.one_node == query.one_node &&
        distance(group.pes, query.pes) < kMostDistance)
      groups.push_back(&group);
  const auto key = [&](const Group* group) {
    return std::tuple(distance(group->pes, query.pes), group->pes,
                      distance(group->element_bytes, static_cast<double>(query.element_bytes)), group->element_bytes);
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const Group* a, const Group* b) { return key(a) < key(b); });
  for (const Group* const group : groups)
    for (const SizeChoice& choice : group->sizes)
      if (is_within(choice, query) && can_run(choice.algorithm))
        return beside ? with_least_copies(*group, choice, query.bytes, can_run, beside) : choice;
  return std::nullopt;
}

std::optional<SizeChoice> choose(const std::string& machine, const std::string& file, const Query& query,
                                 const std::function<bool(const std::string&)>& can_run, const Beside& beside) {
  const char* const set = std::getenv("TANDEM_SELECTION");
  const std::string own = !file.empty() ? file : set != nullptr ? set : "";
  if (!own.empty())
    if (auto choice = choose(load_selection(own), query, can_run, beside)) return choice;
  for (const bool named : {true, false})
    for (const SelectionTable& table : builtin_tables()) {
      if (named ? !names(table, machine) : !table.machines.empty()) continue;
      if (auto choice = choose(table, query, can_run, beside)) return choice;
    }
  return std::nullopt;
}

}  // namespace tandem::tune
