#pragma once
/// Reports of calls that last: no wait ends by itself, but a line says who waits for whom (TANDEM_SLOW_WAIT_S).

namespace tandem::nccl {

/// Starts the thread that looks at all communicators of this process, once.
void watch_calls();

}  // namespace tandem::nccl
