#include "tune/selection.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <tuple>

#include "base/builtin_files.h"

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
constexpr double kAnyDistance = std::numeric_limits<double>::infinity();

using Tables = std::vector<const SelectionTable*>;

bool is_within(const SizeChoice& choice, const Query& query) {
  return query.bytes <= choice.up_to_bytes || query.bytes <= choice.up_to_bytes_per_pe * query.pes;
}

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter_or_digit(char c) { return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z'); }

/// The tables in the order in which they are asked; those of one entry together.
std::vector<Tables> ranked(const Machine& machine, const SelectionTable* own) {
  std::map<int, Tables, std::greater<>> by_fit;
  for (const SelectionTable& table : builtin_tables())
    if (table.processor == machine.processor) by_fit[fit(table.machines, table.fabric, machine)].push_back(&table);
  std::vector<Tables> all;
  if (own != nullptr) all.push_back({own});
  for (auto& [number, tables] : by_fit) all.push_back(std::move(tables));
  return all;
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

/// Rules 2 to 4, of groups less than `most_distance` away.
std::optional<SelectedChoice> choose(const Tables& tables, double most_distance, const Query& query,
                                     const std::function<bool(const std::string&)>& can_run, const Beside& beside) {
  struct Found {
    const Group* group;
    const SelectionTable* table;
  };
  std::vector<Found> groups;
  for (const SelectionTable* const table : tables)
    for (const Group& group : table->groups)
      if (group.collective == query.collective && group.layer == query.layer && group.one_node == query.one_node &&
          distance(group.pes, query.pes) < most_distance)
        groups.push_back({&group, table});
  const auto key = [&](const Found& found) {
    const Group& group = *found.group;
    return std::tuple(distance(group.pes, query.pes), group.pes, found.table->is_predicted,
                      distance(group.element_bytes, static_cast<double>(query.element_bytes)), group.element_bytes);
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const Found& a, const Found& b) { return key(a) < key(b); });
  for (const Found& found : groups)
    for (const SizeChoice& choice : found.group->sizes)
      if (is_within(choice, query) && can_run(choice.algorithm))
        return SelectedChoice{beside ? with_least_copies(*found.group, choice, query.bytes, can_run, beside) : choice,
                              found.table->name, found.group->source};
  return std::nullopt;
}

}  // namespace

bool is_of_family(std::string_view machine, std::string_view family) {
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  for (auto at = machine.begin();; ++at) {
    at = std::search(at, machine.end(), family.begin(), family.end(), same);
    if (at == machine.end()) return false;
    const auto after = at + static_cast<std::ptrdiff_t>(family.size());
    const bool begins = at == machine.begin() || !is_letter_or_digit(at[-1]);
    if (begins && (after == machine.end() || !is_digit(*after))) return true;
  }
}

int fit(const std::vector<std::string>& families, std::optional<Fabric> fabric, const Machine& machine) {
  int best = fabric == machine.link.fabric ? 0 : -1;
  for (const std::string& family : families)
    if (is_of_family(machine.name, family)) best = std::max(best, static_cast<int>(family.size()));
  return best;
}

const std::vector<SelectionTable>& builtin_tables() {
  static const std::vector<SelectionTable> tables = [] {
    std::vector<SelectionTable> all;
    for (const detail::BuiltinFile& file : detail::builtin_selections())
      all.push_back(parse_selection(file.text, std::string(file.name)));
    return all;
  }();
  return tables;
}

std::optional<SelectedChoice> choose(const SelectionTable& table, const Query& query,
                                     const std::function<bool(const std::string&)>& can_run, const Beside& beside) {
  return choose(Tables{&table}, kMostDistance, query, can_run, beside);
}

namespace {

std::string own_table(const std::string& file) {
  const char* const set = std::getenv("TANDEM_SELECTION");
  return !file.empty() ? file : set != nullptr ? set : "";
}

}  // namespace

bool has_own_table(const std::string& file) { return !own_table(file).empty(); }

std::optional<SelectedChoice> choose(const Machine& machine, const std::string& file, const Query& query,
                                     const std::function<bool(const std::string&)>& can_run, const Beside& beside) {
  const std::string own = own_table(file);
  const std::optional<SelectionTable> table = own.empty() ? std::nullopt : std::optional(load_selection(own));
  const std::vector<Tables> all = ranked(machine, table ? &*table : nullptr);
  for (const double most_distance : {kMostDistance, kAnyDistance}) {
    if (!query.layer.empty() && most_distance == kAnyDistance) break;
    for (const Tables& tables : all)
      if (auto choice = choose(tables, most_distance, query, can_run, beside)) return choice;
  }
  return std::nullopt;
}

}  // namespace tandem::tune
