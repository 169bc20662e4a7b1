#pragma once
/// The bell of each PE: a change of one of the PE's words wakes the threads that sleep until a word changes.
///
/// The bell lies in the PE's WaitWords. A sleeper sets it, checks its condition once more, and sleeps while the bell is
/// set. A writer changes a word, then clears the bell if it is set, and wakes all sleepers. A fence on each side
/// ensures that the sleeper sees the new word or the writer sees the bell.

#include "tandem/impl/cuda/context.h"

namespace tandem::host {

/// Returns the PE of the world in whose memory the address lies; -1 if it lies in no PE's memory.
int owner_of(const cuda::Context& context, const void* address);

/// Wakes the threads that sleep on the bell of PE `pe`, after a change of one of its words.
void ring(const cuda::Context& context, int pe);
/// Rings the bell of the PE in whose memory the word lies, if there is one.
void ring_owner(const cuda::Context& context, const void* word);

/// Sets this PE's bell. The sleeper then checks its condition once more before it calls `sleep_until_rung`.
void set_bell(const cuda::Context& context);
/// Blocks until the bell of this PE rings, for a millisecond at most: some awaited data has a writer that rings no
/// bell. Returns whether it rang.
bool sleep_until_rung(const cuda::Context& context);

}  // namespace tandem::host
