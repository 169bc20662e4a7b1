#pragma once
/// Mutants: programs with one broken synchronising operation, named by its call site. The device model breaks it, so
/// the algorithm stays as it is.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "check/run_once.h"
#include "sim/run/monitor.h"

namespace tandem::checker {

/// Returns the name of an operation, such as "notify" or "gate".
const char* name(sim::SyncOperation operation);
/// Returns the name of a fault, such as "dropped" or "relaxed".
const char* name(sim::Fault fault);
/// Returns the faults with which an operation can be broken.
const std::vector<sim::Fault>& faults_of(sim::SyncOperation operation);

struct CallSite {
  std::string file;  ///< from src/ or include/ on
  int line = 0;
  sim::SyncOperation operation = sim::SyncOperation::kSignal;

  bool operator<(const CallSite& other) const {
    return std::tie(file, line, operation) < std::tie(other.file, other.line, other.operation);
  }
};

/// One call site broken in one way.
struct Mutant {
  CallSite site;
  sim::Fault fault = sim::Fault::kNone;
};

/// Collects the call sites that a program reaches.
class SiteCollector final : public sim::Faults {
 public:
  sim::Fault at(sim::SyncOperation operation, Site site) override;
  /// Returns the call sites in the order of file, line and operation.
  std::vector<CallSite> sites() const;

 private:
  std::map<CallSite, int> sites_;
};

/// Breaks one call site.
class OneFault final : public sim::Faults {
 public:
  explicit OneFault(Mutant mutant) : mutant_(std::move(mutant)) {}
  sim::Fault at(sim::SyncOperation operation, Site site) override;

 private:
  Mutant mutant_;
};

/// Returns the path from src/, include/, tests/, ... on.
std::string short_path(const char* file);

}  // namespace tandem::checker
