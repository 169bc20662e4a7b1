#include "last_call.h"

#include <cstdint>
#include <exception>
#include <iterator>

#include "tandem/error.h"

namespace tandem::c {

LastCall::Place LastCall::place_of(void* stream) const {
  Place place;
  place.capture = calls_.capture_of(stream);
  place.stream = place.capture == 0 ? calls_.number_of(stream) : reinterpret_cast<std::uintptr_t>(stream);
  return place;
}

LastCall::End& LastCall::end_of(const Place& place) {
  End& end = ends_[place.capture];
  if (end.event != nullptr) return end;
  end.event = {calls_.make_event(), EventDestroy{&calls_}};
  // Numbers of captures grow: the oldest one has ended. That of plain calls is 0.
  if (ends_.size() > kMostCaptures) ends_.erase(std::next(ends_.begin(), ends_.contains(0) ? 1 : 0));
  return end;
}

bool LastCall::begin(void* stream) {
  place_ = place_of(stream);
  wait(stream, place_);
  if (orders_graphs_) wait_across_graphs(stream, place_);
  mode_ = StreamCalls::kRelaxed;
  calls_.exchange_capture_mode(mode_);
  return place_.capture != 0;
}

void LastCall::end(void* stream) {
  calls_.exchange_capture_mode(mode_);
  note(stream, place_);
}

void LastCall::end_failed(void* stream) noexcept {
  try {
    calls_.exchange_capture_mode(mode_);
    note(stream, place_);
  } catch (const std::exception&) {
    // The call's own error is thrown.
  }
}

void LastCall::reserve(void* stream, int blocks) {
  if (place_.capture == 0) launches_.reserve(*this, stream, blocks, sms_);
}

bool LastCall::has_event(End& last) {
  if (last.is_noted) return true;
  if (calls_.capture_of(last.handle) != 0) return false;
  calls_.record(last.event.get(), last.handle);
  last.is_noted = true;
  return true;
}

void LastCall::let_wait(void* stream) {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(0);
  if (found == ends_.end() || !found->second.is_set || found->second.is_over) return;
  End& last = found->second;
  if (last.stream != calls_.number_of(stream) && has_event(last)) calls_.wait(stream, last.event.get());
}

void LastCall::wait(void* stream, const Place& place) {
  const std::lock_guard lock(mutex_);
  End& last = end_of(place);
  // A captured stream is told by its handle, which stands for another one in every thread here.
  const bool is_same = last.stream == place.stream && !(place.capture != 0 && calls_.is_of_thread(stream));
  if (!last.is_set || is_same) return;
  if (place.capture == 0) several_streams_ = true;
  if (last.is_over) return;
  if (!has_event(last))
    throw InvalidArgument(
        "stream: another one than that of the calls before, which is being captured; allowed once tandem_synchronize "
        "was called for that one before its capture");
  calls_.wait(stream, last.event.get());
}

void LastCall::wait_across_graphs(void* stream, const Place& place) {
  const std::lock_guard lock(mutex_);
  if (place.capture == 0) {
    if (across_graphs_ != nullptr) calls_.wait(stream, across_graphs_.get());
    return;
  }
  if (across_graphs_ == nullptr) {
    across_graphs_ = {calls_.make_event(), EventDestroy{&calls_}};
    const auto plain = ends_.find(0);
    const bool is_under_way = plain != ends_.end() && plain->second.is_set && !plain->second.is_over;
    if (is_under_way && calls_.capture_of(plain->second.handle) == 0)
      calls_.record(across_graphs_.get(), plain->second.handle);
  }
  if (!end_of(place).is_set) calls_.wait_in_graph(stream, across_graphs_.get());
}

void LastCall::note(void* stream, const Place& place) {
  const std::lock_guard lock(mutex_);
  End& last = end_of(place);
  if (across_graphs_ != nullptr) {
    if (place.capture == 0)
      calls_.record(across_graphs_.get(), stream);
    else
      last.record = calls_.record_in_graph(across_graphs_.get(), stream, last.record);
  }
  // Another thread could not ask this one's own stream for the event.
  const bool is_noted = several_streams_ || place.capture != 0 || calls_.is_of_thread(stream);
  if (is_noted) calls_.record(last.event.get(), stream);
  last.is_set = true;
  last.is_over = false;
  last.is_noted = is_noted;
  last.stream = place.stream;
  last.handle = stream;
}

void LastCall::ended(void* stream) {
  const Place place = place_of(stream);
  const std::lock_guard lock(mutex_);
  const auto last = ends_.find(0);
  if (place.capture == 0 && last != ends_.end() && last->second.stream == place.stream) last->second.is_over = true;
}

}  // namespace tandem::c
