#pragma once
/// The order of a world's calls in several CUDA streams.

#include <map>
#include <memory>
#include <mutex>

#include "order/launch_order.h"
#include "stream_order.h"

namespace tandem::c {

/// The calls of CUDA that the order needs. Each throws RuntimeFailure with CUDA's error. Tests have streams of their
/// own.
class StreamCalls {
 public:
  virtual ~StreamCalls() = default;

  /// Returns the number of the capture that the stream belongs to; 0 if it is not captured.
  virtual unsigned long long capture_of(void* stream) const = 0;
  /// Returns the stream's number, which no other stream ever has. CUDA refuses this for a captured stream.
  virtual unsigned long long number_of(void* stream) const = 0;
  /// Returns whether the handle stands for another stream in each thread (cudaStreamPerThread).
  virtual bool is_of_thread(void* stream) const = 0;
  /// Makes an event of the current GPU.
  virtual void* make_event() const = 0;
  virtual void destroy_event(void* event) const noexcept = 0;
  virtual void record(void* event, void* stream) const = 0;
  virtual void wait(void* stream, void* event) const = 0;
  /// Records an event when a graph of the captured stream runs, after what the stream has so far. `previous`: the
  /// capture's last record, which comes first (null: none). Later work of the stream does not wait. Returns this
  /// record.
  virtual void* record_in_graph(void* event, void* stream, void* previous) const = 0;
  /// Waits for an event when a graph of the captured stream runs.
  virtual void wait_in_graph(void* stream, void* event) const = 0;
  /// Exchanges this thread's capture mode (cudaStreamCaptureMode) with `mode`.
  virtual void exchange_capture_mode(int& mode) const = 0;
  /// The mode in which this thread may allocate while it captures a stream.
  static constexpr int kRelaxed = 2;
};

struct EventDestroy {
  const StreamCalls* calls = nullptr;
  void operator()(void* event) const { calls->destroy_event(event); }
};

/// An event behind every call would keep the next one in the stream from starting early (1 KB on two H200s: 6.4 us a
/// call instead of 4.5). While all calls of a world are in one stream there is no event. The first call in another
/// stream records one in the first stream, unless that was synchronized before. From then on each call has its event.
/// An earlier call's stream is not used any more, because it may have been destroyed or be captured. Every thread has
/// its own cudaStreamPerThread, so calls there have their event at once.
///
/// Calls of one capture follow each other, and plain calls do. If graphs are ordered too, one event leads from each
/// graph or plain call to what is launched next, from the first capture on. A graph records it beside its calls, so
/// that these follow each other directly. A captured call may be the first of its kind and make a plan, so the calling
/// thread's mode is relaxed.
class LastCall final : public StreamOrder {
 public:
  /// `calls` and `launches`, that of the world's GPU, live as long. `sms`: those of the GPU. With `orders_graphs` the
  /// program destroys its graphs before this object.
  LastCall(const StreamCalls& calls, LaunchOrder& launches, int sms, bool orders_graphs)
      : calls_(calls), launches_(launches), sms_(sms), orders_graphs_(orders_graphs) {}
  ~LastCall() override { launches_.forget(*this); }
  LastCall(const LastCall&) = delete;
  LastCall& operator=(const LastCall&) = delete;

  void reserve(void* stream, int blocks) override;
  void ended(void* stream) override;
  /// Lets another world's stream wait for this world's plain calls so far. Any thread may call it.
  void let_wait(void* stream);

 protected:
  bool begin(void* stream) override;
  void end(void* stream) override;
  void end_failed(void* stream) noexcept override;

 private:
  struct Place {
    /// A number, since a new stream may have the handle of a destroyed one. A stream that is captured must stay and may
    /// not be asked for its number, so for it this is the handle.
    unsigned long long stream = 0;
    unsigned long long capture = 0;  ///< 0: none
  };
  struct End {
    std::unique_ptr<void, EventDestroy> event;
    unsigned long long stream = 0;
    void* handle = nullptr;
    bool is_set = false;     // there was a call
    bool is_over = false;    // ... and it is
    bool is_noted = false;   // ... with the event behind it
    void* record = nullptr;  // of a capture: the last one of the event across graphs
  };
  /// Captures whose last call is known: more than are made at a time.
  static constexpr std::size_t kMostCaptures = 64;

  Place place_of(void* stream) const;
  /// With an event of the current GPU.
  End& end_of(const Place& place);
  void wait(void* stream, const Place& place);
  void wait_across_graphs(void* stream, const Place& place);
  void note(void* stream, const Place& place);

  /// Makes sure that the event is behind the last call. Returns false if its stream is captured meanwhile.
  bool has_event(End& last);

  const StreamCalls& calls_;
  LaunchOrder& launches_;
  int sms_;
  bool orders_graphs_;
  Place place_;                             // of the call that has begun
  int mode_ = 0;                            // its thread's capture mode before
  std::mutex mutex_;                        // for what follows
  std::map<unsigned long long, End> ends_;  // by capture
  std::unique_ptr<void, EventDestroy> across_graphs_;
  bool several_streams_ = false;  // of plain calls
};

}  // namespace tandem::c
