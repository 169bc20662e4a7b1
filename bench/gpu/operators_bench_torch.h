#pragma once
/// PyTorch's operators on symmetric memory, with the same layers, in processes of its own (operators_torch.py) that
/// take turns with this one.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tandem/operators.h"

namespace tandem::bench {

/// Microseconds of one call of the slowest rank.
struct TorchTime {
  double us = 0;
  double matmul_us = 0;  ///< of torch.matmul alone on the gathered problem
};

class TorchPeer {
 public:
  /// Starts the script on `gpus` GPUs. Where there is no Python, no PyTorch or no such operator, failure() says so,
  /// here and after any other call; nothing throws.
  TorchPeer(const std::string& script, int gpus);
  ~TorchPeer();
  TorchPeer(const TorchPeer&) = delete;
  TorchPeer& operator=(const TorchPeer&) = delete;

  /// Makes ready, when PyTorch is, for turns of `calls` calls each; false: it cannot, or its results are wrong.
  bool prepare(Operator op, Size m, Size n, Size k, int calls);
  /// One turn; nothing: it failed.
  std::optional<TorchTime> turn();

  /// PyTorch's; empty before the first call of prepare.
  const std::string& version() const { return version_; }
  /// Returns the failure, or "". The script's own output is on standard error.
  const std::string& failure() const { return failure_; }

 private:
  void start(const std::string& script, int gpus);
  /// Waits for the script's first line.
  bool is_ready();
  bool send(const std::string& line);
  /// The next line within so many seconds; nothing: failure() says why.
  std::optional<std::string> receive(double seconds);
  void fail(const std::string& why);
  void end();

  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::string pending_, version_, failure_;
};

}  // namespace tandem::bench
