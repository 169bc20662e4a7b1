#pragma once
/// The parts of the check of NCCL's interface.

#include <functional>
#include <string>
#include <vector>

#include "gpu/nccl/nccl_ranks.h"
#include "support/nccl_case.h"

namespace tandem::check {

/// The ranks of this process, their buffers, and the counts of all processes.
class Checker {
 public:
  static constexpr std::size_t kBytes = std::size_t{96} << 20U;  ///< of a rank's input, and of its output
  static constexpr std::size_t kGuard = 16;                      ///< bytes behind each result that nothing may write

  Checker(const NcclLibrary& library, const std::vector<Rank>& local, int count, Shared& counts);

  bool speaks() const { return ranks[0].number == 0; }
  void count(bool right, const std::string& name);
  /// Runs a part, and prints its name, results and time.
  void part(const char* name, const std::function<void()>& body);
  /// Runs one call on all ranks of this process and compares results and what is behind them.
  void run(const Case& c);
  /// Runs one call in memory that the caller gives, for each rank.
  void run_in(const Case& c, const std::vector<char*>& inputs, const std::vector<char*>& outputs);
  /// Calls `body(rank)` for each rank of this process, in a group if there are several.
  void together(const std::function<void(std::size_t)>& body);
  void fill(const Case& c, std::size_t local, char* to, int turn);
  void clear(const Case& c, std::size_t local, char* to);
  bool is_right(const Case& c, std::size_t local, const char* from, int turn);

  const NcclLibrary& nccl;
  const std::vector<Rank> ranks;
  const int total;
  Shared& shared;
  std::vector<char*> in;
  std::vector<char*> out;

 private:
  std::vector<char> scratch_;
  std::vector<char> wanted_;
};

void check_calls(Checker& checker);
void check_large(Checker& checker);
void check_groups(Checker& checker);
void check_multiplied_sums(Checker& checker);
void check_graphs(Checker& checker);
void check_windows(Checker& checker);
void check_two_communicators(Checker& checker);
void check_bad_input(Checker& checker);
void check_split(Checker& checker);
void check_abort(Checker& checker);

}  // namespace tandem::check
