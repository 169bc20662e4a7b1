#pragma once
/// Which PE of which world this process is, from the environment that launchers set.

#include "tandem/advanced/unique_id.h"

namespace tandem {

/// The place of this process in a world.
struct Placement {
  UniqueId id;  ///< where the processes meet
  int pe = 0;   ///< number of this PE
  int pes = 1;  ///< number of PEs
  /// Number among the PEs of its node, and how many these are, as far as the launcher says: Slurm says what the job
  /// asked for, of which a step may be a part.
  int local_pe = 0;
  int local_pes = 1;  ///< PEs of this node
};

/// Reads what a launcher set, and finds the other processes. The n-th call of each process makes the n-th world.
///
/// * torchrun, `tandem launch`: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
/// * Slurm's srun, where RANK is not set: SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_NTASKS_PER_NODE,
///   SLURM_JOB_ID, SLURM_STEP_ID.
/// * TANDEM_UNIQUE_ID, a UniqueId's text: where the processes meet, for one world. Needed where they are on several
///   hosts.
///
/// Without TANDEM_UNIQUE_ID, PE 0 makes the id and hands it to the others through a local socket in the abstract name
/// space. Its name and key follow from address, port, run id, user and size. Both ends check that the other belongs to
/// this user and knows the key, which is a secret where TANDEM_RUN_ID is random (`tandem launch` sets it). The port
/// itself is left to its owner: torchrun's store, for example, goes on listening there.
///
/// Throws InvalidArgument (a variable that is missing or no number, a PE that came twice), Timeout, RuntimeFailure
/// (another process of this user is PE 0 already, or other users hold all names of the socket).
Placement placement_from_environment(double timeout_s = 600);

}  // namespace tandem
