#pragma once
/// The number by which the processes of a host select their GPUs.

namespace tandem::cli {

/// Returns the number of GPUs that LOCAL_RANK runs through: none where it is the number of the process. With
/// TANDEM_SHARE_GPU=1 these are the GPUs of this host, so that a program which selects GPU LOCAL_RANK finds one. Throws
/// InvalidArgument if TANDEM_SHARE_GPU has another value.
int shared_gpus();

/// Returns the LOCAL_RANK of a process of this host.
inline int local_rank(int local_pe, int gpus) { return gpus > 0 ? local_pe % gpus : local_pe; }

}  // namespace tandem::cli
