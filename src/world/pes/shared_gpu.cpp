#include "world/pes/shared_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "bootstrap/local/environment.h"
#include "tandem/error.h"

namespace tandem::world {

namespace {

/// The device of a PE, as all PEs learn it.
struct DeviceOfPe {
  Bytes id;  ///< empty: any number of processes may use it
  bool may_be_shared;
  std::string problem;  ///< why it cannot be shared

  static DeviceOfPe decode(const Bytes& blob) {
    Reader reader(blob);
    const View id = reader.bytes();
    DeviceOfPe made{{id.begin(), id.end()}, reader.u64() != 0, ""};
    made.problem = reader.text();
    return made;
  }
};

const char* text_of(bool may_be_shared) { return may_be_shared ? "1" : "0 or nothing"; }

/// Throws if processes `first` and `second`, which have one GPU, may not share it.
void check_pair(const Devices& devices, std::size_t first, std::size_t second, const DeviceOfPe& shared) {
  const std::string both =
      fmt::format("{} backend: PEs {} and {} are processes on one GPU", devices.name(), first, second);
  if (!shared.may_be_shared)
    throw Unsupported(
        fmt::format("{}; each process needs a GPU of its own ({}=1 lets processes share one by time slices, for "
                    "development and tests)",
                    both, bootstrap::kShareGpu));
  if (!shared.problem.empty()) throw Unsupported(fmt::format("{}, which cannot be shared: {}", both, shared.problem));
}

}  // namespace

std::vector<int> number_devices(bootstrap::WorldMember& member, Devices& devices, int device) {
  const bool may_be_shared = bootstrap::may_share_gpus();
  Writer own;
  own.bytes(devices.exclusive_id(device)).u64(may_be_shared ? 1 : 0);
  own.text(may_be_shared ? devices.lacks_sharing(device) : "");
  std::vector<DeviceOfPe> all;
  for (const Bytes& blob : member.all_gather(own.result(), "devices")) all.push_back(DeviceOfPe::decode(blob));
  std::vector<int> numbers;
  std::optional<std::size_t> sharing;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const DeviceOfPe& its = all[pe];
    if (!its.id.empty() && its.may_be_shared != all[0].may_be_shared)
      throw InvalidArgument(fmt::format("{}: PE 0 has {}, PE {} has {}; all PEs must have the same",
                                        bootstrap::kShareGpu, text_of(all[0].may_be_shared), pe,
                                        text_of(its.may_be_shared)));
    const auto same = [&](const DeviceOfPe& other) { return !its.id.empty() && other.id == its.id; };
    const auto first = static_cast<std::size_t>(
        std::find_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(pe), same) - all.begin());
    numbers.push_back(static_cast<int>(first));
    if (first == pe) continue;
    check_pair(devices, first, pe, its);
    if (!sharing) sharing = pe;
  }
  static std::once_flag once;
  if (sharing && member.pe() == 0)
    std::call_once(once, [&] {
      log_line(LogLevel::kWarn, [&] {
        return fmt::format(
            "PE {} shares a GPU with PE {} ({}=1): processes take turns there by time slices, so times "
            "mean nothing",
            *sharing, numbers[*sharing], bootstrap::kShareGpu);
      });
    });
  return numbers;
}

bool are_shared(const std::vector<int>& numbers) {
  return std::set<int>(numbers.begin(), numbers.end()).size() < numbers.size();
}

}  // namespace tandem::world
