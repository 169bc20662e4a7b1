#include "check/mutants.h"

#include <array>

namespace tandem::checker {

namespace {

using sim::Fault;
using sim::SyncOperation;

constexpr std::array<const char*, sim::kSyncOperations> kOperations{"signal",
                                                                    "notify",
                                                                    "put_signal",
                                                                    "wait",
                                                                    "signal_test",
                                                                    "fence",
                                                                    "quiet",
                                                                    "next_epoch",
                                                                    "atomic",
                                                                    "ll_put",
                                                                    "ll_get",
                                                                    "write_signal",
                                                                    "wait_signal",
                                                                    "event wait",
                                                                    "gate",
                                                                    "tile notify",
                                                                    "signal_after_reads"};
constexpr std::array<const char*, sim::kFaults> kFaultNames{
    "none", "dropped", "relaxed", "early", "signal first", "same parity", "no proxy fence", "reads only"};

}  // namespace

const char* name(SyncOperation operation) { return kOperations[static_cast<std::size_t>(operation)]; }
const char* name(Fault fault) { return kFaultNames[static_cast<std::size_t>(fault)]; }

const std::vector<Fault>& faults_of(SyncOperation operation) {
  static const std::vector<Fault> dropped{Fault::kDropped};
  static const std::vector<Fault> release{Fault::kDropped, Fault::kRelaxed};
  static const std::vector<Fault> notify{Fault::kDropped, Fault::kRelaxed, Fault::kReadsOnly};
  static const std::vector<Fault> put_signal{Fault::kDropped, Fault::kSignalFirst};
  static const std::vector<Fault> wait{Fault::kDropped, Fault::kRelaxed, Fault::kEarly};
  static const std::vector<Fault> counter{Fault::kDropped, Fault::kSameParity};
  static const std::vector<Fault> gate{Fault::kDropped, Fault::kRelaxed, Fault::kEarly, Fault::kNoProxyFence};
  switch (operation) {
    case SyncOperation::kNotify:
      return notify;
    case SyncOperation::kSignalAfterReads:
    case SyncOperation::kStreamSignal:
    case SyncOperation::kTileNotify:
      return release;
    case SyncOperation::kPutSignal:
      return put_signal;
    case SyncOperation::kWait:
      return wait;
    case SyncOperation::kEpoch:
    case SyncOperation::kAtomic:
      return counter;
    case SyncOperation::kGate:
      return gate;
    default:
      return dropped;
  }
}

std::string short_path(const char* file) {
  std::string path = file;
  for (const char* const folder : {"/src/", "/include/", "/tools/", "/tests/", "/examples/", "/bench/"})
    if (const auto at = path.rfind(folder); at != std::string::npos) return path.substr(at + 1);
  return path;
}

Fault SiteCollector::at(SyncOperation operation, Site site) {
  ++sites_[{short_path(site.file), site.line, operation}];
  return Fault::kNone;
}

std::vector<CallSite> SiteCollector::sites() const {
  std::vector<CallSite> all;
  for (const auto& [site, times] : sites_) all.push_back(site);
  return all;
}

Fault OneFault::at(SyncOperation operation, Site site) {
  if (operation != mutant_.site.operation || site.line != mutant_.site.line) return Fault::kNone;
  return short_path(site.file) == mutant_.site.file ? mutant_.fault : Fault::kNone;
}

}  // namespace tandem::checker
