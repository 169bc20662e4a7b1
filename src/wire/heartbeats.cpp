#include "wire/heartbeats.h"

#include <algorithm>

namespace tandem::wire {

namespace {

constexpr std::chrono::milliseconds kBeat{250};
/// The time between heartbeats while the PE waits. Waits of other hosts take it for one that goes on (kStaleNs).
constexpr std::chrono::milliseconds kBeatOfWait{25};
constexpr std::chrono::milliseconds kRead{5};
/// With a PE, those of its host are lost that were not heard for this part of the time either. PEs of a host
/// beat at other times, so it is less where two beats take more than the rest.
constexpr double kOfTheSameHost = 0.8;

using Seconds = std::chrono::duration<double>;

Seconds silence_beside_a_lost_pe(Seconds silence) {
  return std::max<Seconds>(silence / 2, std::min<Seconds>(kOfTheSameHost * silence, silence - 2 * kBeat));
}

}  // namespace

Heartbeats::Heartbeats(Heartbeat setup, double silence_s, int pes, int me)
    : setup_(std::move(setup)), silence_(silence_s), pes_(pes), me_(me), known_(static_cast<std::size_t>(pes)) {}

void Heartbeats::hear(int pe, Clock::time_point now) {
  known(pe).heard = now;
  if (is_rail_peer(pe)) setup_.pulses[pe].beats.fetch_add(1, std::memory_order_relaxed);
}

void Heartbeats::take_look(int pe, std::uint64_t look) {
  known(pe).look = look;
  setup_.on_look(pe, look);
  if (is_rail_peer(pe)) setup_.pulses[pe].look.store(look, std::memory_order_relaxed);
}

std::optional<std::uint64_t> Heartbeats::due(Clock::time_point now) {
  // A look at a GPU is a copy, so not every loop of the proxy takes one.
  if (now - looked_ < kRead) return std::nullopt;
  looked_ = now;
  const std::uint64_t look = setup_.look();
  if (now - beaten_ < (look != look_ ? kBeatOfWait : kBeat)) return std::nullopt;
  beaten_ = now;
  look_ = look;
  setup_.pulses[me_].beats.fetch_add(1, std::memory_order_relaxed);
  return look;
}

void Heartbeats::watch(Clock::time_point now) {
  if (now - read_ < kRead) return;
  read_pulses(now);
  report_silence(now);
  read_ = now;
}

void Heartbeats::read_pulses(Clock::time_point now) {
  for (int pe = 0; pe < pes_; ++pe) {
    if (pe == me_ || is_rail_peer(pe)) continue;
    Known& its = known(pe);
    const std::uint64_t beats = setup_.pulses[pe].beats.load(std::memory_order_relaxed);
    if (beats != its.beats) its.heard = now;
    its.beats = beats;
    const std::uint64_t look = setup_.pulses[pe].look.load(std::memory_order_relaxed);
    if (is_on_this_host(pe) || look == its.look) continue;
    its.look = look;
    setup_.on_look(pe, look);
  }
}

/// A PE that hears others for this host may be silent itself. Then nothing is known of those that it hears.
void Heartbeats::report_silence(Clock::time_point now) {
  // This process may have been stopped itself. Then it has to read first.
  const bool was_away = now - read_ > silence_ / 2;
  const auto was_heard = [&](int pe) { return known(pe).heard != Clock::time_point{}; };
  const auto is_silent = [&](int pe, std::chrono::duration<double> limit) {
    return known(pe).is_lost || (was_heard(pe) && now - known(pe).heard > limit);
  };
  const auto is_new = [&](int pe, std::chrono::duration<double> limit) {
    const int hearer = me_ - me_ % setup_.host_size + pe % setup_.host_size;
    const bool is_known = is_on_this_host(pe) || hearer == me_ || !is_silent(hearer, silence_ / 2);
    return is_known && !known(pe).is_lost && is_silent(pe, limit);
  };
  std::vector<bool> is_touched(static_cast<std::size_t>(pes_), false);  // hosts, by their first PE
  const auto first_of_host = [&](int pe) { return static_cast<std::size_t>(pe - pe % setup_.host_size); };
  for (int pe = 0; pe < pes_; ++pe) {
    if (was_away && was_heard(pe)) known(pe).heard = now;
    if (is_new(pe, silence_)) is_touched[first_of_host(pe)] = true;
  }
  // If the link of a host is cut, its other PEs were last heard a heartbeat earlier or later.
  std::vector<int> silent;
  for (int pe = 0; pe < pes_; ++pe)
    if (is_touched[first_of_host(pe)] && is_new(pe, silence_beside_a_lost_pe(silence_))) silent.push_back(pe);
  if (silent.empty()) return;
  for (const int pe : silent) known(pe).is_lost = true;
  setup_.on_silence(silent);
}

}  // namespace tandem::wire
