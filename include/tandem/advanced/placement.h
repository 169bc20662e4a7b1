#pragma once
/// The place of this process in a world, read from the environment that launchers set.

#include "tandem/advanced/unique_id.h"

namespace tandem {

/// The place of this process in a world.
struct Placement {
  UniqueId id;  ///< where the processes meet
  int pe = 0;   ///< number of this PE
  int pes = 1;  ///< number of PEs
  /// Number among the PEs of its node, and their count, as the launcher states them. Slurm states what the job
  /// requested, which may be more than this step has.
  int local_pe = 0;
  int local_pes = 1;  ///< PEs of this node
};

/// Reads the launcher's variables and finds the other processes. The n-th calls of all processes make the n-th world.
///
/// * torchrun, `tandem launch`: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
/// * Slurm's srun, where RANK is not set: SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_NTASKS_PER_NODE,
///   SLURM_JOB_ID, SLURM_STEP_ID.
///
/// Processes of several hosts need one of these:
///
/// * TANDEM_SECRET, at least 32 characters that only the job knows. PE 0 opens the rendezvous at MASTER_ADDR (for Slurm
///   else the first host), port TANDEM_PORT, else MASTER_PORT + 1, else a port that follows from Slurm's numbers.
/// * TANDEM_UNIQUE_ID, the text of a UniqueId. `UniqueId::create` serves one world, `tandem rendezvous` several.
///
/// Without these two, PE 0 makes the id and hands it to the others through a local socket in the abstract name
/// space. The socket's name and key are derived from address, port, run id, user and size. Both ends check that the
/// other belongs to this user and knows the key, which is secret if TANDEM_RUN_ID is random (`tandem launch` sets it).
/// The port itself is not used: torchrun's store, for example, keeps listening there.
///
/// Throws InvalidArgument (a variable that is missing or wrong, a PE that joins twice, a port in use) or Timeout.
/// Throws RuntimeFailure if another process of this user is PE 0 already, or if other users hold all names of the
/// socket.
Placement placement_from_environment(double timeout_s = 600);

}  // namespace tandem
