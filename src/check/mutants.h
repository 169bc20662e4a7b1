#pragma once
/// Mutants: a program with one synchronising operation broken, by its call site. Broken is the device model, so no
/// algorithm is touched.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "check/run_once.h"
#include "sim/run/monitor.h"

namespace tandem::checker {

/// "notify", "gate".
const char* name(sim::SyncOperation operation);
/// "dropped", "relaxed".
const char* name(sim::Fault fault);
/// In what ways an operation can be broken.
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

/// The call sites that a program comes by.
class SiteCollector final : public sim::Faults {
 public:
  sim::Fault at(sim::SyncOperation operation, Site site) override;
  /// By file, line and operation.
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

/// The path from src/, include/, tests/, ... on.
std::string short_path(const char* file);

}  // namespace tandem::checker
