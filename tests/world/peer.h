#pragma once
/// The parts that programs of a test's process have in common.

#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "tandem/worlds.h"

namespace tandem::test {

inline constexpr Size kMiB = Size{1} << 20;

struct PeerPlace {
  UniqueId id;
  int pe;
  int pes;
};

using Programs = std::map<std::string, std::function<void(const PeerPlace&)>>;

/// Joins the world that the environment names, as processes of a launcher do.
void meet_by_environment();

/// Returns the programs of PEs on several hosts.
const Programs& programs_between_hosts();
/// Returns the programs of PEs on several hosts, of which one fails.
const Programs& programs_that_lose_hosts();
/// Returns the programs of PEs whose memory has fabric handles.
const Programs& programs_of_fabric();
/// Returns the programs of PEs whose work is recorded.
const Programs& programs_of_recording();
/// Returns the programs of a PE that outlives worlds.
const Programs& programs_after_faults();

/// A small heap.
WorldOptions options(double timeout_s = 30, double arrival_timeout_s = 600);

void expect(bool condition, const std::string& what);

/// `work` ends with an error of type E whose text has `part` in it.
template <class E, class Work>
void expect_error(const std::string& part, Work work) {
  try {
    work();
  } catch (const E& error) {
    return expect(std::string(error.what()).find(part) != std::string::npos, part + ", not: " + error.what());
  } catch (const std::exception& error) {
    throw std::runtime_error("expected another kind of error with " + part + ", not: " + error.what());
  }
  throw std::runtime_error("expected an error: " + part);
}

/// Why the world is over, once it is.
std::string end_of(const WorldProcess& process);

/// Each PE finds in each part what its PE has written.
void check_reach(World& world, const Symm<std::byte>& memory);

/// Makes small all-reduces on a team until the world is over.
void reduce_to_the_end(World& world, const Team& team);

/// A small all-reduce, for real.
void check_all_reduce(World& world, Size count = 1000);

}  // namespace tandem::test
