#pragma once
/// The hand-off of the world's id from PE 0 to the other processes of a job on one host. It uses a local socket, whose
/// name and key are derived from values that the launcher gives to all of them.

#include <map>

#include "bootstrap/local/environment.h"
#include "bootstrap/protocol/deadline.h"
#include "bootstrap/protocol/fd.h"
#include "bootstrap/protocol/handshake.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::bootstrap {

/// Returns the common key of one job's processes for the world of that number. It is secret only if TANDEM_RUN_ID, or
/// another id of the launcher, is random.
Key key_of_job(const Places& places, int world);

/// Names of the local socket of PE 0, in the order in which they are tried. Another user may hold some of them.
constexpr int kHandOffNames = 16;
std::string hand_off_name(const Key& job, int i);

/// PE 0's end of the hand-off. Without a listener there is no hand-off.
struct HandOff {
  Fd listener;
  Key job{};
  int size = 0;
  std::map<int, Peer> takers;  ///< the processes that have received the id, by PE

  /// Throws InvalidArgument if the job has no such PE, or if another living process is that PE.
  void check(int pe, int job_size, const Peer& taker);
};

/// Listens under the first name of the job that no other user holds. Throws RuntimeFailure with the holder's name if a
/// process of this user is PE 0 already, or if all names are taken.
HandOff open_hand_off(const Key& job, int size);

/// Waits until PE 0 hands over its id. Throws Timeout, or the error that PE 0 answers.
UniqueId take_id(const Key& job, int pe, int size, const Deadline& deadline);

}  // namespace tandem::bootstrap
