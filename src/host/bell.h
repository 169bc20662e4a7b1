#pragma once
/// The bell of each PE: who changes a word of a PE wakes the threads that sleep until one changes.
///
/// It lies in the PE's WaitWords. A sleeper sets it, looks once more at what it waits for, and sleeps while it is set;
/// whoever changed a word clears it where it is set, and wakes all. A fence on each side makes one see the other.

#include "tandem/impl/cuda/context.h"

namespace tandem::host {

/// The PE of the world in whose memory the address lies; -1: in none's.
int owner_of(const cuda::Context& context, const void* address);

/// Wakes who sleeps on PE `pe`, after a change of one of its words.
void ring(const cuda::Context& context, int pe);
/// Likewise for the owner of a word, if it has one.
void ring_owner(const cuda::Context& context, const void* word);

/// The sleeper's side: `set_bell`, then another look, then `sleep`.
void set_bell(const cuda::Context& context);
/// Sleeps until the bell of this PE rings, for a millisecond at most: data may be waited for whose writer rings nobody.
/// Returns whether it rang.
bool sleep_until_rung(const cuda::Context& context);

}  // namespace tandem::host
