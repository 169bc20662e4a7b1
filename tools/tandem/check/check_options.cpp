#include "tools/tandem/check/check_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/check.h"
#include "tandem/error.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {

namespace {

constexpr int kMostPes = 32;
constexpr int kMostSchedules = 1'000'000;

}  // namespace

std::vector<int> parse_pes(const std::string& text) {
  std::vector<int> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::optional<int> pes = whole_number(std::string_view(text).substr(begin, end - begin));
    if (!pes || *pes < 1 || *pes > kMostPes)
      throw InvalidArgument(
          fmt::format("--pes: '{}' given, allowed are numbers from 1 to {} with commas between them", text, kMostPes));
    all.push_back(*pes);
    begin = end + 1;
  }
  return all;
}

void validate(const CheckArguments& a) {
  if (a.schedules < 1 || a.schedules > kMostSchedules)
    throw InvalidArgument(fmt::format("--schedules: {} given, allowed is 1 to {}", a.schedules, kMostSchedules));
  if (a.mutants && !a.broken.empty())
    throw InvalidArgument("--break: does not go with --mutants, which breaks all call sites");
  try {
    parse_strategy(a.strategy);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("--{}", error.what()));
  }
}

}  // namespace tandem::cli
