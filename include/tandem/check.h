#pragma once
/// Checks a distributed program on the simulator: races by happens-before, hangs, and results under other schedules.
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

/// The difference between schedules.
enum class Strategy {
  kRandom,  ///< random delays wherever delays are possible
  kPct,     ///< PEs have random priorities, which change at a few random points (Burckhardt et al. 2010)
  kDelay,   ///< a few random points are very late
  kDfs,     ///< every choice of at most two delayed points, one after the other (Emmi et al. 2011)
};
/// Returns "random", "pct", "delay" or "dfs".
const char* name(Strategy strategy);
/// Throws InvalidArgument with the list of names.
Strategy parse_strategy(const std::string& text);

/// Options of a check.
struct CheckOptions {
  /// Empty: h200x4, or h200x8 for more than four PEs.
  Machine machine = {};
  /// At most 32.
  int pes = 4;
  /// See SimOptions.
  int pes_per_node = 0;
  /// Bytes of one step of a block's tile loop. A smaller value makes small data take several steps.
  Size tile_bytes = Size{64} << 10;
  int schedules = 20;                     ///< the number of schedules to run
  Strategy strategy = Strategy::kRandom;  ///< how the schedules differ
  /// Schedule i has the seed `seed` + i.
  std::uint64_t seed = 1;
  /// Whether to stop after the first schedule with a finding.
  bool stop_at_first = false;
  /// Whether to find reads of data that was never written. Switch it off for programs whose values do not matter.
  bool uninitialised_reads = true;
  /// Whether the seeds 4, 12, 20, ... of kRandom and kPct run a PE's kernels one at a time, in the order in which they
  /// were enqueued. Switch it off for programs that need two kernels of a PE at the same time.
  bool one_kernel_at_a_time = true;
  /// Whether to run the first schedule twice and compare the two runs event by event.
  bool check_determinism = true;
  /// The command that runs these schedules again, without seed and number. `replay` of a finding starts with it. If it
  /// is empty, findings name CheckOptions.
  std::string replay = {};
  /// Called before each schedule. It resets the state that the program shares between PEs.
  std::function<void()> before = {};
  /// Called by every PE after `program`, within its host program. It returns the error of the result, or "".
  std::function<std::string(World&)> verify = {};
};

/// A place in the source that belongs to a finding.
struct CheckSite {
  std::string file;       ///< the path that the compiler was given
  int line = 0;           ///< from 1
  std::string operation;  ///< "put", "load", "wait"
  std::string who;        ///< "PE 1 block 0 of ShiftAdd"
  int pe = 0;             ///< the PE that did it
  int launch = 0;         ///< number of the launch of that kernel in its stream, from 1; 0: no kernel
  int occurrence = 0;     ///< visits of this launch (or host program, or stream) to this place, from 1; 0: unknown
  double time_us = 0;     ///< simulated

  /// "put at ring.h:12 by PE 1 block 0 of Ring, launch 2, occurrence 3".
  std::string text() const;
};

/// One finding of the checker.
struct Finding {
  /// read_before_write_is_visible, write_before_read_is_over, unordered_writes, source_reuse, signal_race,
  /// before_epoch, out_of_bounds, use_after_free, uninitialised_read, hang, wrong_result, nondeterminism, error.
  std::string kind;
  std::vector<CheckSite> sites;  ///< earlier one first
  std::vector<int> pes;          ///< the PEs that take part
  std::string buffer;            ///< "inbox[16, 32) on PE 2"
  std::string signal;            ///< "arrived[3] on PE 2"
  std::string missing;           ///< the missing order, and the operation that gives it
  std::string replay;  ///< reproduces the finding exactly: the tool's command, or the options of a check that differ
  std::uint64_t seed = 0;  ///< the seed of the schedule that found it

  /// Returns a few lines for people.
  std::string text() const;
};

/// The result of a check.
struct CheckResult {
  int schedules = 0;                      ///< schedules that were run
  Strategy strategy = Strategy::kRandom;  ///< how the schedules differed
  /// kDfs: whether all choices were tried.
  bool exhausted = false;
  std::vector<Finding> findings;  ///< in the order in which they were found

  /// Returns whether nothing was found.
  bool clean() const { return findings.empty(); }
  /// Returns all findings, or a line for none. For kDfs it also states whether the search is exhausted.
  std::string text() const;
};
/// Writes the text. GoogleTest uses it for a failed expectation.
std::ostream& operator<<(std::ostream& out, const CheckResult& result);

/// Runs `program` on every PE under the schedules of the options. Throws InvalidArgument for options out of range, and
/// OutOfMemory or std::bad_alloc if memory is short. Any other exception of the program is a finding.
CheckResult check(const std::function<void(World&)>& program, const CheckOptions& options);

/// Checks one kernel. `setup` allocates on every PE and returns the kernel's arguments. The kernel is launched `calls`
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
