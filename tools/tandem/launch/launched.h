#pragma once
/// One process of `tandem launch`, in a process group of its own.

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

#include "bootstrap/protocol/fd.h"

namespace tandem::cli {

/// What a process writes to one of its two outputs, line by line behind its number. Lines that are very long are passed
/// on in pieces.
class PrefixedOutput {
 public:
  PrefixedOutput(bootstrap::Fd pipe, std::string prefix, std::FILE* to)
      : pipe_(std::move(pipe)), prefix_(std::move(prefix)), to_(to) {}

  /// -1 once the process has closed it.
  int fd() const { return pipe_.get(); }
  /// Passes on what is there. False where it could not be written; it is lost then.
  bool pass_on();
  /// Passes on the rest and closes. False as above.
  bool finish();

 private:
  bool print_lines(std::size_t first_new);
  bool print(std::string_view line);

  bootstrap::Fd pipe_;
  std::string prefix_;
  std::FILE* to_;
  std::string pending_;
};

struct Launched {
  pid_t pid = -1;  ///< -1 once it has ended
  std::vector<PrefixedOutput> outputs;

  /// To it and whatever it started in its group.
  void signal(int number) const;
};

/// Starts PE `pe`. `variables` are NAME=VALUE. Throws InvalidArgument where the program cannot be started.
Launched start_process(const std::vector<std::string>& program, const std::vector<std::string>& variables, int pe);

}  // namespace tandem::cli
