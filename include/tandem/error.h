#pragma once
/// Errors of the host side. Everything that the library throws derives from `tandem::Error`.
///
///   Error
///   ├── InvalidArgument   the caller asked for what cannot be: names the argument, what was given, what is allowed
///   ├── Unsupported       valid, but not on this machine, backend or team (an algorithm refused by name)
///   ├── OutOfMemory       a heap is exhausted: how much was asked, how much was left
///   ├── CheckFailed       a result is wrong or a rule of the model was broken (a store to a PE that is not reachable)
///   └── RuntimeFailure    the run itself failed
///       ├── Deadlock      nothing can go on: who waits for which signal of whom
///       └── Timeout       a bounded wait gave up
///
/// The command-line tool turns InvalidArgument and Unsupported into exit code 2, CheckFailed into 1, the rest into 3.

#include <stdexcept>
#include <string>

namespace tandem {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InvalidArgument : public Error {
 public:
  using Error::Error;
};

class Unsupported : public Error {
 public:
  using Error::Error;
};

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

class CheckFailed : public Error {
 public:
  using Error::Error;
};

class RuntimeFailure : public Error {
 public:
  using Error::Error;
};

class Deadlock : public RuntimeFailure {
 public:
  using RuntimeFailure::RuntimeFailure;
};

class Timeout : public RuntimeFailure {
 public:
  using RuntimeFailure::RuntimeFailure;
};

}  // namespace tandem
