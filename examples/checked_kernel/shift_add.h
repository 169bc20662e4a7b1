#pragma once
// A kernel of one's own: every PE sends a vector to the next PE and adds what arrives. Called again and again: what a
// call sends may only be overwritten when it was read.

#include "tandem/block.h"

struct ShiftAdd {
  struct Args {
    tandem::Symm<float> x, received;
    tandem::Signals ready;    // [block]: the next PE has begun this call, so its `received` may be written
    tandem::Signals arrived;  // [block]: the previous PE's vector is here
    tandem::Epochs epochs;
    tandem::Size count;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const tandem::Range part = tandem::split(a.count, block.count(), 4)[block.index()];
    const tandem::Signals arrived = a.arrived + block.index();
    const tandem::Signals ready = a.ready + block.index();
    const tandem::Epoch epoch = block.next_epoch(a.epochs);
    const int n = block.num_pes();
    const int next = (block.pe() + 1) % n;
    block.notify(ready, epoch, (block.pe() + n - 1) % n);
    block.wait(ready, 1, epoch);  // without this, a PE that is a call ahead overwrites what the next one still reads
    block.put_signal_nbi(a.received + part.begin, a.x.local() + part.begin, part.size(), arrived, epoch, next);
    block.wait(arrived, 1, epoch);  // what the previous PE sent is here
    block.quiet();                  // and what this one sent has left, so x may change
    for (const tandem::Range tile : block.template tiles<float>(part)) {
      const auto mine = block.template load<float>(a.x.local(), tile);
      block.store(a.x.local(), tile, mine + block.template load<float>(a.received.local(), tile));
    }
  }
};
