#pragma once
/// Checks a distributed program on the simulator: races by happens-before, hangs, and what other schedules bring.
///
///   const CheckResult result = check([](World& world) { ... }, {.machine = load_machine("h200x4"), .pes = 4});
///   EXPECT_TRUE(result.clean()) << result.text();
///
/// docs/reference/checker.md says what is ordered by what and how much memory a check takes.

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "tandem/impl/site.h"
#include "tandem/machine.h"
#include "tandem/range.h"
#include "tandem/simulation.h"
#include "tandem/world.h"

namespace tandem {

/// How schedules differ from each other.
enum class Strategy {
  kRandom,  ///< everything that may be late is late at random
  kPct,     ///< PEs have random priorities, which change at a few random points (Burckhardt et al. 2010)
  kDelay,   ///< a few random points are very late
  kDfs,     ///< one after the other: every choice of at most two points that are late (Emmi et al. 2011)
};
/// "random", "pct", "delay", "dfs".
const char* name(Strategy strategy);
/// Throws InvalidArgument listing the names.
Strategy parse_strategy(const std::string& text);

/// Options of a check.
struct CheckOptions {
  /// Empty: h200x4, for more than four PEs h200x8.
  Machine machine = {};
  /// At most 32.
  int pes = 4;
  /// As SimOptions has it.
  int pes_per_node = 0;
  /// Bytes that one step of a block's tile loop covers: with less, smaller data takes several steps.
  Size tile_bytes = Size{64} << 10;
  int schedules = 20;                     ///< the number of schedules to run
  Strategy strategy = Strategy::kRandom;  ///< how the schedules differ
  /// Schedule i has the seed `seed` + i.
  std::uint64_t seed = 1;
  /// Ends with the schedule that finds something.
  bool stop_at_first = false;
  /// Finds data whose value is used and that nobody has written. Not for programs whose values do not matter.
  bool uninitialised_reads = true;
  /// Also with the first schedule run once more, which must do the same to the last event.
  bool check_determinism = true;
  /// The command that runs these schedules again, without seed and number: `replay` of a finding begins with it. Where
  /// it is empty, findings name CheckOptions.
  std::string replay = {};
  /// Called before each schedule: puts what the program shares between PEs back as it was.
  std::function<void()> before = {};
  /// Called by every PE after `program`, within its host program; returns what is wrong with the result, or nothing.
  std::function<std::string(World&)> verify = {};
};

/// A place in the source that has to do with a finding.
struct CheckSite {
  std::string file;       ///< the path that the compiler was given
  int line = 0;           ///< from 1
  std::string operation;  ///< "put", "load", "wait"
  std::string who;        ///< "PE 1 block 0 of ShiftAdd"
  int pe = 0;             ///< the PE that did it
  int launch = 0;         ///< which launch of that kernel in its stream, from 1; 0: no kernel
  int occurrence = 0;     ///< which time this launch (or host program, or stream) came by here, from 1; 0: not known
  double time_us = 0;     ///< simulated

  /// "put at ring.h:12 by PE 1 block 0 of Ring, launch 2, occurrence 3".
  std::string text() const;
};

/// One finding of the checker.
struct Finding {
  /// read_before_write_is_visible, write_before_read_is_over, unordered_writes, source_reuse, signal_race,
  /// before_epoch, out_of_bounds, use_after_free, uninitialised_read, hang, wrong_result, nondeterminism, error.
  std::string kind;
  std::vector<CheckSite> sites;  ///< the earlier one first
  std::vector<int> pes;          ///< the PEs that take part
  std::string buffer;            ///< "inbox[16, 32) on PE 2"
  std::string signal;            ///< "arrived[3] on PE 2"
  std::string missing;           ///< what order is missing, and which operation gives it
  std::string replay;            ///< reproduces it exactly: the tool's command, or the options of a check that differ
  std::uint64_t seed = 0;        ///< the seed of the schedule that found it

  /// A few lines for people.
  std::string text() const;
};

/// The result of a check.
struct CheckResult {
  int schedules = 0;                      ///< that were run
  Strategy strategy = Strategy::kRandom;  ///< how the schedules differed
  /// kDfs: no other choice is left.
  bool exhausted = false;
  std::vector<Finding> findings;  ///< in the order in which they were found

  /// Returns whether nothing was found.
  bool clean() const { return findings.empty(); }
  /// All findings, or that there are none; of kDfs also whether it is exhausted.
  std::string text() const;
};
/// Writes the text, as GoogleTest does for a failed expectation.
std::ostream& operator<<(std::ostream& out, const CheckResult& result);

/// Runs `program` on every PE under the schedules that the options ask for. Throws InvalidArgument for options out of
/// range, and OutOfMemory or std::bad_alloc where memory is short; whatever else the program throws is a finding.
CheckResult check(const std::function<void(World&)>& program, const CheckOptions& options);

/// The same for one kernel: `setup` allocates on every PE and returns its arguments; the kernel is launched `calls`
/// times in one stream.
template <class Kernel, class Setup>
CheckResult check_kernel(Grid grid, const Setup& setup, const CheckOptions& options, int calls = 2) {
  return check(
      [&](World& world) {
        const typename Kernel::Args args = setup(world);
        Stream stream = world.make_stream("main");
        for (int call = 0; call < calls; ++call) stream.launch<Kernel>(grid, args);
        stream.synchronize();
      },
      options);
}

}  // namespace tandem
