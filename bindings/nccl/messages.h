#pragma once
/// Messages of a group, in rounds that a launch can hold.

#include <vector>

#include "bindings/nccl/communicator.h"
#include "tandem/send_recv.h"

namespace tandem::nccl {

struct MessageRound {
  std::vector<Send> sends;
  std::vector<Receive> receives;
};

/// Returns one round, or several if there are more messages than a launch takes. Both ranks of a message compute the
/// same round for it, or make all in one, so that no order of rounds can deadlock. Messages of a rank to itself and
/// empty ones are left out.
std::vector<MessageRound> rounds_of(const std::vector<Message>& messages, int rank, int ranks);

}  // namespace tandem::nccl
