#pragma once
/// Errors of the NCCL interface: result codes, and the text of the last one.

#include <exception>
#include <string>

#include "bindings/nccl/abi.h"
#include "tandem/error.h"

namespace tandem::nccl {

/// An error with a result code of its own.
class Failed : public Error {
 public:
  Failed(ncclResult_t result, const std::string& text) : Error(text), result_(result) {}
  ncclResult_t result() const { return result_; }

 private:
  ncclResult_t result_;
};

struct Problem {
  ncclResult_t result = ncclSuccess;
  std::string text;
};

/// Describes the exception that is being handled.
Problem problem_now();

/// Keeps the text of a problem as this process's last one and logs it if NCCL_DEBUG is set. Returns its result.
ncclResult_t reported(const Problem& problem);
std::string last_problem();

/// Runs `work`, which may throw.
template <class Work>
ncclResult_t guarded(const Work& work) {
  try {
    return work();
  } catch (...) {
    return reported(problem_now());
  }
}

/// Throws InvalidArgument if `pointer` is null.
template <class T>
T& given(T* pointer, const char* name) {
  if (pointer == nullptr) throw InvalidArgument(std::string(name) + ": NULL given, allowed is an address");
  return *pointer;
}

/// Writes a line to the log of NCCL_DEBUG, at warnings and above.
void warn(const std::string& text);
/// Does the same at NCCL_DEBUG=INFO.
void inform(const std::string& text);
/// Writes a warning where NCCL_DEBUG is set; else it writes to Tandem's log (TANDEM_LOG).
void announce(const std::string& text);
/// Writes, once, the line that says which library this is, if NCCL_DEBUG is set.
void introduce();

}  // namespace tandem::nccl
