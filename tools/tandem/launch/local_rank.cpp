#include "tools/tandem/launch/local_rank.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "bootstrap/local/environment.h"
#include "tools/tandem/main/gpu.h"

namespace tandem::cli {

/// A process of its own counts them, since CUDA and the variables that it needs stay in a process that has called it.
int shared_gpus() {
  if (!bootstrap::may_share_gpus()) return 0;
  constexpr int most = 255;  // of an exit code
  const pid_t child = ::fork();
  if (child == 0) ::_exit(std::min(count_gpus(), most));
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

}  // namespace tandem::cli
