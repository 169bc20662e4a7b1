// Two slots of staging and credits: every PE sends chunks to the next one, at most two ahead of its reader. The program
// checks the right kernel and one with the usual mistake, a single word for both slots. docs/tutorials/03_credits.md
// explains both.

#include <cstdio>

#include "tandem/check.h"

using namespace tandem;

constexpr int kSlots = 2;

/// Sends `chunks` chunks to the next PE and receives as many from the one before.
template <bool kWordForEachSlot>
struct SendChunks {
  struct Args {
    const float* from;
    float* to;
    Symm<float> staging;  // kSlots chunks
    Signals arrived;      // kSlots words: the number of the chunk that the slot holds
    Signals credit;       // the number of the last chunk that the next PE has read
    Epochs epochs;
    Size chunk;  // elements
    int chunks;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int next = (block.pe() + 1) % block.num_pes();
    const int previous = (block.pe() + block.num_pes() - 1) % block.num_pes();
    const Epoch first = block.next_epoch(a.epochs, static_cast<Epoch>(a.chunks));  // counts over all launches
    for (int i = 0; i < a.chunks; ++i) {
      const Epoch number = first + static_cast<Epoch>(i);
      const Size slot = static_cast<Size>(number % kSlots);
      const Symm<float> staged = a.staging + slot * a.chunk;
      const Signals arrived = a.arrived + (kWordForEachSlot ? slot : 0);

      // listing: loop
      if (number > kSlots) block.wait(a.credit, 1, number - kSlots);  // the slot's last chunk was read
      block.put_signal(staged, a.from + i * a.chunk, a.chunk, arrived, number, next);

      block.wait(arrived, 1, number);
      block.copy(a.to + i * a.chunk, staged.local(), a.chunk);
      block.signal_after_reads(a.credit, number, previous);
      // end of listing
    }
  }
};

/// Two launches, so that slots, words and epochs are used again.
template <bool kWordForEachSlot>
CheckResult check_chunks() {
  using K = SendChunks<kWordForEachSlot>;
  constexpr Size kChunk = 8;
  constexpr int kChunks = 3;
  const auto setup = [](World& world) {
    SymmetricHeap& heap = world.heap();
    typename K::Args args{};
    float* const from = heap.allocate_local<float>(kChunks * kChunk, "from");
    const float values[kChunks * kChunk] = {};
    world.copy_in(from, values, sizeof values);
    args.from = from;
    args.to = heap.allocate_local<float>(kChunks * kChunk, "to");
    args.staging = heap.allocate<float>(kSlots * kChunk, "staging");
    args.arrived = heap.signals(kSlots, "arrived");
    args.credit = heap.signals(1, "credit");
    args.epochs = heap.epochs(1, "epochs");
    args.chunk = kChunk;
    args.chunks = kChunks;
    return args;
  };
  return check_kernel<K>({.blocks = 1}, setup, {.pes = 3, .schedules = 20});
}

int main() {
  const CheckResult right = check_chunks<true>();
  std::printf("a word for each slot: %s\n", right.text().c_str());
  const CheckResult wrong = check_chunks<false>();
  std::printf("one word for both slots:\n%s", wrong.text().c_str());
  bool is_found = false;
  for (const Finding& finding : wrong.findings) is_found = is_found || finding.kind == "read_before_write_is_visible";
  return right.clean() && is_found ? 0 : 1;
}
