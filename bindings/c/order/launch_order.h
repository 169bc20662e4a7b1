#pragma once
/// The order of several worlds' calls on one GPU.

#include <list>
#include <mutex>

namespace tandem::c {

class LastCall;

/// The blocks of a call wait for those of other GPUs and keep their SMs meanwhile. If calls of several worlds do not
/// fit side by side, each may hold a part of the SMs and wait for ever. Such a call therefore runs behind others, in
/// stream order, and the least recent ones come first. Calls in a graph are not counted, since they run at any time.
class LaunchOrder {
 public:
  /// Lets `stream` wait until `blocks` blocks of `world` fit beside the other worlds' calls on a GPU of `sms` SMs.
  void reserve(LastCall& world, void* stream, int blocks, int sms);
  /// The world's work is over.
  void forget(const LastCall& world);

 private:
  /// SMs for a world's calls, which run one after the other. A call that waits for them takes over their SMs. All
  /// entries together have no more than the GPU.
  struct Entry {
    LastCall* world;
    int blocks;
  };

  std::mutex mutex_;
  std::list<Entry> entries_;  // the least recent call first
};

/// Returns the order of this process's calls on that GPU.
LaunchOrder& launches_on(int device);

}  // namespace tandem::c
