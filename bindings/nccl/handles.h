#pragma once
/// The handles that programs hold.

#include <memory>
#include <vector>

#include "bindings/nccl/communicator.h"

namespace tandem::nccl {

/// Returns a new handle of the communicator. Its address is never used again, so that a destroyed handle is told from
/// every later one.
ncclComm_t add_handle(std::shared_ptr<Communicator> communicator);
/// Returns the communicator. Throws InvalidArgument if there is none.
std::shared_ptr<Communicator> communicator_of(ncclComm_t handle);
/// Does the same, or returns null.
std::shared_ptr<Communicator> find_communicator(ncclComm_t handle);
/// Returns whether this library ever gave out the handle.
bool was_handle(ncclComm_t handle);
std::vector<std::shared_ptr<Communicator>> all_communicators();
/// Ends the use of a handle, and returns its communicator. Throws InvalidArgument if there is none.
std::shared_ptr<Communicator> remove_handle(ncclComm_t handle);

/// A call that uses a communicator.
class Use {
 public:
  explicit Use(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {
    communicator_->enter();
  }
  ~Use() { communicator_->leave(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  std::shared_ptr<Communicator> communicator_;
};

/// Closes the communicator on a thread of its own: one thread may destroy several ranks of a world in turn. The end of
/// the process closes what is left on CPUs, and waits some seconds for these threads.
void close_later(std::shared_ptr<Communicator> communicator);
/// Lets the end of the process close communicators before it ends what exists now, such as a rendezvous.
void close_at_exit();

}  // namespace tandem::nccl
