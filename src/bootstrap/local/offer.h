#pragma once
/// How the processes of a job on one host get the id of their world from PE 0: through a local socket whose name and
/// key follow from what the launcher gave all of them.

#include <map>

#include "bootstrap/local/environment.h"
#include "bootstrap/protocol/deadline.h"
#include "bootstrap/protocol/fd.h"
#include "bootstrap/protocol/handshake.h"
#include "tandem/advanced/unique_id.h"

namespace tandem::bootstrap {

/// The same for the processes of one job of this user that make their world of that number. Only a random
/// TANDEM_RUN_ID, or another random id of the launcher, makes it a secret.
Key key_of_job(const Places& places, int world);

/// Names of the local socket where PE 0 is met: the first that it gets. Another user may hold some of them.
constexpr int kHandOffNames = 16;
std::string hand_off_name(const Key& job, int i);

/// PE 0's end of the hand-off. Without a listener there is none.
struct HandOff {
  Fd listener;
  Key job{};
  int size = 0;
  std::map<int, Peer> takers;  ///< who has taken the id as which PE

  /// Throws InvalidArgument where there is no such PE in the job, or another process that still lives is that PE.
  void check(int pe, int job_size, const Peer& taker);
};

/// Listens under the first name of the job that no other user holds. Throws RuntimeFailure, which names the holder, if
/// a process of this user is PE 0 already or all names are taken.
HandOff open_hand_off(const Key& job, int size);

/// Waits until PE 0 hands over its id. Throws Timeout, or what PE 0 answers.
UniqueId take_id(const Key& job, int pe, int size, const Deadline& deadline);

}  // namespace tandem::bootstrap
