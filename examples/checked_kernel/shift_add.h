#pragma once
// A kernel that every user could write: each PE sends a vector to the next PE and adds the vector that it receives.
// Calls follow each other, so a call may overwrite `received` only after the next PE has read it.

#include "tandem/block.h"

struct ShiftAdd {
  struct Args {
    tandem::Symm<float> x, received;
    tandem::Signals ready;    // [block]: the next PE has started this call, so its `received` is free
    tandem::Signals arrived;  // [block]: the previous PE's vector is complete
    tandem::Epochs epochs;
    tandem::Size count;
  };

  // listing: run
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const tandem::Range part = tandem::split(a.count, block.count(), 4)[block.index()];
    const tandem::Signals arrived = a.arrived + block.index();
    const tandem::Signals ready = a.ready + block.index();
    const tandem::Epoch epoch = block.next_epoch(a.epochs);
    const int n = block.num_pes();
    const int next = (block.pe() + 1) % n;
    block.notify(ready, epoch, (block.pe() + n - 1) % n);
    block.wait(ready, 1, epoch);  // without this wait, a fast PE overwrites data that its neighbour still reads
    block.put_signal_nbi(a.received + part.begin, a.x.local() + part.begin, part.size(), arrived, epoch, next);
    block.wait(arrived, 1, epoch);  // the previous PE's data is complete here
    block.quiet();                  // this PE's data has left, so `x` may change
    for (const tandem::Range tile : block.template tiles<float>(part)) {
      const auto mine = block.template load<float>(a.x.local(), tile);
      block.store(a.x.local(), tile, mine + block.template load<float>(a.received.local(), tile));
    }
  }
  // end of listing
};
