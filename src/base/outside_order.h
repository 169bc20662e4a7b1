#pragma once
/// The order that leads over other processes, announced to ThreadSanitizer, which sees this process alone.

#if defined(__SANITIZE_THREAD__)
#define TANDEM_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TANDEM_THREAD_SANITIZER 1
#endif
#endif

#if defined(TANDEM_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace tandem {

#if defined(TANDEM_THREAD_SANITIZER)

inline char outside_order = 0;

/// A thread calls it when it signals to another process: the other one may answer by a message to this process.
inline void order_leaves_process() { __tsan_release(&outside_order); }
/// Orders the work on a message from another process after all that left this process before.
inline void order_enters_process() { __tsan_acquire(&outside_order); }

#else

inline void order_leaves_process() {}
inline void order_enters_process() {}

#endif

}  // namespace tandem
