#include "bindings/nccl/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tandem/error.h"

namespace tandem::nccl {

namespace {

/// Returns the fields that the caller knows; all others are undefined.
ncclConfig_t known_fields(const ncclConfig_t& config) {
  ncclConfig_t all = undefined_config();
  constexpr std::size_t kLeast = offsetof(ncclConfig_t, blocking);
  if (config.size < kLeast)
    throw InvalidArgument(fmt::format("config.size: {} given, allowed is at least {}", config.size, kLeast));
  if (config.magic != kConfigMagic)
    throw InvalidArgument(fmt::format("config.magic: {:#x} given, allowed is {:#x}: NCCL_CONFIG_INITIALIZER sets it",
                                      config.magic, kConfigMagic));
  // The caller's structure may be shorter than this one, and may end within its last word.
  std::memcpy(&all, &config, std::min(config.size, sizeof(all)));
  all.size = sizeof(all);
  return all;
}

/// Throws InvalidArgument unless the field is undefined or between these limits.
bool is_set(int value, int least, int most, const char* field) {
  if (value == kConfigUndefined) return false;
  if (value < least || value > most)
    throw InvalidArgument(fmt::format("config.{}: {} given, allowed are {} to {}", field, value, least, most));
  return true;
}

}  // namespace

Settings settings_of(const ncclConfig_t* config, const Settings& inherited) {
  Settings settings = inherited;
  if (config == nullptr) return settings;
  const ncclConfig_t given = known_fields(*config);
  if (is_set(given.blocking, 0, 1, "blocking")) settings.is_blocking = given.blocking == 1;
  const bool has_most = is_set(given.maxCTAs, 1, INT_MAX, "maxCTAs");
  if (has_most) settings.max_blocks = given.maxCTAs;
  if (is_set(given.minCTAs, 1, has_most ? given.maxCTAs : INT_MAX, "minCTAs"))
    settings.max_blocks = std::max(settings.max_blocks, given.minCTAs);
  // These fields change no result; their limits are checked all the same.
  is_set(given.cgaClusterSize, 0, 8, "cgaClusterSize");
  is_set(given.splitShare, 0, 1, "splitShare");
  is_set(given.shrinkShare, 0, 1, "shrinkShare");
  is_set(given.collnetEnable, 0, 1, "collnetEnable");
  is_set(given.CTAPolicy, 0, kMostCtaPolicy, "CTAPolicy");
  settings.config = given;
  settings.net_name = given.netName != nullptr ? given.netName : "";
  settings.name = given.commName != nullptr ? given.commName : "";
  return settings;
}

}  // namespace tandem::nccl
