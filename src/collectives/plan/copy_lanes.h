#pragma once
/// The streams of a plan's copy engines.

#include <string>

#include "tandem/stream.h"
#include "tandem/world.h"

namespace tandem::kernels {

/// Peers are served one after the other. All PEs start together with their next PE, so that no two copies meet at one
/// receiver. Concurrent copies slow each other down (four GPUs, 256 MB each: 384 GB/s out of each GPU one after the
/// other, 270 concurrently). A signal follows its copies in their stream; in a separate stream it waited until all
/// later copies were done. Bytes that stay on the GPU have their own stream, since such a copy is slower than the link.
class CopyLanes {
 public:
  CopyLanes(World& world, const std::string& name)
      : copies_(world.make_stream(name + " copies")), local_(world.make_stream(name + " local copies")) {}

  /// Lets all lanes start after the present work of `stream`.
  void begin_after(Stream& stream) {
    begun_ = stream.record();
    copies_.wait(begun_);
    used_local_ = false;
  }
  /// Lets `stream` continue after all lanes.
  void join(Stream& stream) {
    stream.wait_for(copies_);
    if (used_local_) stream.wait_for(local_);
  }

  void copy(std::byte* to, const std::byte* from, Size bytes) { copies_.copy_async(to, from, bytes); }
  void copy_local(std::byte* to, const std::byte* from, Size bytes) {
    if (to == from || bytes == 0) return;
    if (!used_local_) local_.wait(begun_);
    used_local_ = true;
    local_.copy_async(to, from, bytes);
  }
  /// Sets `word` to the value in `from` after all copies so far.
  void signal(Signal* word, const Epoch* from) { copies_.write_signal_from(word, from); }
  Stream& copies() { return copies_; }

 private:
  Stream copies_;
  Stream local_;
  Event begun_;
  bool used_local_ = false;
};

}  // namespace tandem::kernels
