#pragma once
/// One process of `tandem launch`, in a process group of its own.

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

#include "bootstrap/protocol/fd.h"

namespace tandem::cli {

/// One of a process's two outputs. Each line is printed after its number, and very long lines are split.
class PrefixedOutput {
 public:
  PrefixedOutput(bootstrap::Fd pipe, std::string prefix, std::FILE* to)
      : pipe_(std::move(pipe)), prefix_(std::move(prefix)), to_(to) {}

  /// The descriptor, or -1 once the process has closed it.
  int fd() const { return pipe_.get(); }
  /// Passes on the available bytes. Returns false if they could not be written; they are then lost.
  bool pass_on();
  /// Passes on the rest and closes. Returns false as `pass_on` does.
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

  /// Sends a signal to it and to everything it started in its group.
  void signal(int number) const;
};

/// Starts PE `pe`. `variables` are NAME=VALUE. Throws InvalidArgument if the program cannot be started.
Launched start_process(const std::vector<std::string>& program, const std::vector<std::string>& variables, int pe);

}  // namespace tandem::cli
