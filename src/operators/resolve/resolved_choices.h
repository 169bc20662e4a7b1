#pragma once
/// The sources of resolved options, and the options as a list for people.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tandem/advanced/option_choice.h"
#include "tandem/operators.h"

namespace tandem::ops {

struct ResolvedOptions;

/// The options that a caller may leave open.
enum class Choosable {
  kForm,
  kTransport,
  kDirection,
  kReduction,
  kShots,
  kSplits,
  kOrder,
  kTile,
  kPanelGroup,
  kCommunicationSms,
  kOutType
};
inline constexpr std::size_t kChoosables = 11;

/// The source of each option that is chosen so far.
class Origins {
 public:
  struct Origin {
    OptionSource source = OptionSource::kRule;
    std::string reason;
  };

  const std::optional<Origin>& of(Choosable option) const { return origins_[static_cast<std::size_t>(option)]; }
  bool is_from(Choosable option, OptionSource source) const { return of(option) && of(option)->source == source; }
  void set(Choosable option, OptionSource source, const std::string& reason) {
    origins_[static_cast<std::size_t>(option)] = {source, reason};
  }

 private:
  std::array<std::optional<Origin>, kChoosables> origins_;
};

/// The options in the order of Choosable, then the values that follow from them. Every origin is set.
std::vector<OptionChoice> describe_choices(Operator op, const ResolvedOptions& resolved, const Origins& origins);

}  // namespace tandem::ops
