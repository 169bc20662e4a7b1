#pragma once
/// Messages between PEs that are threads of one process.

#include <cstdint>
#include <memory>
#include <vector>

#include "wire/endpoint.h"

namespace tandem::wire {

/// The disorder that tests make, the same for the same seed and the same calls.
struct Disorder {
  std::uint64_t seed = 0;
  int delayed_polls = 0;       ///< a message waits for at most so many polls, data that stays for its sender's too
  int repeated_per_mille = 0;  ///< messages that arrive twice
  int lost_per_mille = 0;      ///< messages that never arrive, against the contract
};

/// The inboxes of all PEs. Endpoints keep them.
class Loop {
 public:
  explicit Loop(int pes, const Disorder& disorder = {});
  std::unique_ptr<Endpoint> endpoint(int pe) const;

  struct Inbox;

 private:
  std::vector<std::shared_ptr<Inbox>> inboxes_;
  Disorder disorder_;
};

}  // namespace tandem::wire
