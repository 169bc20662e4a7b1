#pragma once
/// Groups of calls. Each thread has its own; a single call is a group of one.

#include <functional>
#include <memory>

#include "bindings/nccl/communicator.h"

namespace tandem::nccl {

void start_group();
/// Begins a group of the real NCCL, too, if this thread is in a group.
void enter_real_group();
/// Ends a group. The outermost end runs the calls: those of several communicators at the same time.
ncclResult_t end_group();
/// Ends a group without running its calls. Returns the microseconds that they would take, those of the communicator
/// that takes longest.
double simulate_group();

/// Adds calls to this thread's group, or runs them.
ncclResult_t add_collective(const std::shared_ptr<Communicator>& communicator, const c::Call& call);
ncclResult_t add_message(const std::shared_ptr<Communicator>& communicator, const Message& message);
ncclResult_t add_one_sided(const std::shared_ptr<Communicator>& communicator, std::function<void()> call);
/// `on`: the communicator whose calls the change comes after. `made`: the one that it makes, which may be the same.
ncclResult_t add_change(const std::shared_ptr<Communicator>& on, const std::shared_ptr<Communicator>& made,
                        std::function<void()> change);
/// Notes the error of a call, which is then also that of the group.
ncclResult_t failed_in_group(ncclResult_t result);

}  // namespace tandem::nccl
