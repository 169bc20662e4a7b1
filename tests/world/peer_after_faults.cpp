// A process that outlives many worlds, and what is left of them.
#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "bootstrap/processes.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "world/peer.h"

namespace tandem::test {

namespace {

enum class Fault { kNone, kKilled, kStopped, kAborted, kOtherCall, kMissingCall };
constexpr int kFaults = 6;

/// A part of the error that the survivor gets.
constexpr std::array<const char*, kFaults> kTexts{
    "", "PE 1 (host b) is gone", "PE 1 (host b) not heard for 1 s", "on purpose", "with count 500", "gave up waiting"};

WorldOptions options_of(Fault fault) { return options(30, fault == Fault::kMissingCall ? 0.3 : 600); }

/// PE 0 of a world in which PE 1 fails.
void outlive(WorldProcess& process, Fault fault) {
  if (fault == Fault::kNone) {
    const auto same = process.split(0, 0, options_of(fault));
    return check_all_reduce(same->world());
  }
  expect_error<Error>(kTexts[static_cast<std::size_t>(fault)],
                      [&] { reduce_to_the_end(process.world(), process.world().team()); });
}

/// PE 1 of that world.
void fail(WorldProcess& process, Fault fault) {
  if (fault == Fault::kNone) {
    const auto same = process.split(0, 1, options_of(fault));
    return check_all_reduce(same->world());
  }
  World& world = process.world();
  const Symm<float> data = world.heap().allocate<float>(1000, "data");
  Stream stream = world.make_stream("main");
  const auto plan = make_collective(world, Collective::kAllReduce, {.max_count = 1000});
  plan->run(stream, data.as<std::byte>(), data.as<std::byte>(), 1000);
  stream.synchronize();
  switch (fault) {
    case Fault::kNone:
      break;
    case Fault::kKilled:
      ::raise(SIGKILL);
      return;
    case Fault::kStopped:
      ::raise(SIGSTOP);
      return;
    case Fault::kAborted:
      return process.abort("on purpose");
    case Fault::kOtherCall:
      plan->run(stream, data.as<std::byte>(), data.as<std::byte>(), 500);
      break;
    case Fault::kMissingCall:
      break;
  }
  static_cast<void>(end_of(process));
}

/// Descriptors, threads, and mappings of memory files of this process.
struct Left {
  std::ptrdiff_t descriptors, threads, mappings;

  /// Returns what there is once it does not change any more. The thread of a rendezvous ends a little after its world.
  static Left settled() {
    Left left = now();
    for (int same = 0; same < 30;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const Left next = now();
      same = next == left ? same + 1 : 0;
      left = next;
    }
    return left;
  }
  static Left now() {
    const auto count = [](const char* folder) {
      const std::filesystem::directory_iterator all(folder);
      return std::distance(begin(all), end(all));
    };
    Left left{count("/proc/self/fd"), count("/proc/self/task"), 0};
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) left.mappings += line.find("memfd:") != std::string::npos ? 1 : 0;
    return left;
  }
  bool operator==(const Left&) const = default;
  bool exceeds(const Left& other) const {
    return descriptors > other.descriptors || threads > other.threads || mappings > other.mappings;
  }
  std::string text() const {
    return fmt::format("{} descriptors, {} threads, {} mappings", descriptors, threads, mappings);
  }
};

/// PE 0 of a world with a new process.
void make_and_outlive_world(Fault fault) {
  const std::string silence = fault == Fault::kStopped ? "1" : "600";
  ::setenv("TANDEM_HEARTBEAT_S", silence.c_str(), 1);
  const UniqueId id = UniqueId::create();
  const bootstrap::testing::Process other(
      "/proc/self/exe", {"leave_nothing", id.text(), "1", "2"},
      {"TANDEM_HOST=b", "TANDEM_HEARTBEAT_S=" + silence, fmt::format("TANDEM_TEST_FAULT={}", static_cast<int>(fault))});
  WorldProcess process(id, 0, 2, options_of(fault));
  outlive(process, fault);
}

/// PE 0 outlives worlds, each with another PE 1 that fails in another way. It has no more descriptors, threads and
/// mappings afterwards than after the first world, which loads libraries. The environment has the number of worlds.
void leave_nothing(const PeerPlace& place) {
  if (place.pe == 1) {
    const auto fault = static_cast<Fault>(std::atoi(std::getenv("TANDEM_TEST_FAULT")));
    WorldProcess process(place.id, 1, 2, options_of(fault));
    return fail(process, fault);
  }
  const char* const rounds = std::getenv("TANDEM_TEST_ROUNDS");
  const int worlds = rounds == nullptr ? kFaults + 1 : std::atoi(rounds);
  Left before{};
  for (int i = 0; i < worlds; ++i) {
    make_and_outlive_world(static_cast<Fault>(i % kFaults));
    if (i == 0) before = Left::settled();
  }
  const Left after = Left::settled();
  expect(!after.exceeds(before),
         fmt::format("{} after {} worlds, as after the first, not {}", before.text(), worlds, after.text()));
}

}  // namespace

const Programs& programs_after_faults() {
  static const Programs all{{"leave_nothing", leave_nothing}};
  return all;
}

}  // namespace tandem::test
