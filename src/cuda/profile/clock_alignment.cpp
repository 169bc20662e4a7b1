#include "cuda/profile/clock_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <thread>

#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

constexpr std::size_t kRounds = 1000;
/// Looks for an answer, some 25 us, before other threads of the host go first. A GPU's kernel that runs answers sooner.
constexpr int kLooks = 1000;

template <class T>
T* pinned(std::size_t count) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocPortable), "cudaHostAlloc");
  return new (memory) T[count]();
}

}  // namespace

Clocks::Clocks(std::vector<ClockPe> pes, ClockMeetings meetings)
    : pes_(std::move(pes)), meetings_(std::move(meetings)), began_(now()), offsets_(pes_.size()) {
  for (const ClockPe& pe : pes_) {
    if (pe.stream == nullptr) continue;
    check(cudaSetDevice(pe.device), "cudaSetDevice");
    load_clock_kernels();
  }
  exchanges_ = pinned<trace::Exchange>(kRounds);
  host_mail_ = pinned<HostMail>(1);
}

Clocks::~Clocks() {
  cudaFreeHost(exchanges_);
  cudaFreeHost(host_mail_);
}

trace::ClockOffset Clocks::with_peer(const ClockPe& peer) {
  const ClockPe& first = pes_.front();
  std::fill_n(exchanges_, kRounds, trace::Exchange{});
  if (meetings_.meet) meetings_.meet();
  if (peer.stream != nullptr) {
    check(cudaSetDevice(peer.device), "cudaSetDevice");
    launch_pong(peer.stream, peer.mail, first.mail, kRounds, number_);
  }
  if (first.stream != nullptr) {
    check(cudaSetDevice(first.device), "cudaSetDevice");
    launch_ping(first.stream, first.mail, peer.mail, exchanges_, kRounds, number_);
  }
  number_ += kRounds;
  for (const ClockPe* const pe : {&first, &peer}) {
    if (pe->stream == nullptr) continue;
    check(cudaSetDevice(pe->device), "cudaSetDevice");
    check(cudaStreamSynchronize(pe->stream), "clock alignment");
  }
  if (first.stream == nullptr) return {};
  if (exchanges_[kRounds - 1].received == 0)
    throw Timeout(fmt::format("clock alignment: the GPU of PE {} does not answer that of PE 0", &peer - pes_.data()));
  return trace::estimate_offset({exchanges_, exchanges_ + kRounds}, kTimerStepNs);
}

trace::ClockOffset Clocks::with_host(const ClockPe& own) {
  check(cudaSetDevice(own.device), "cudaSetDevice");
  std::vector<trace::Exchange> exchanges;
  launch_answers(own.stream, host_mail_, kRounds, number_);
  for (std::size_t i = 0; i < kRounds; ++i) {
    const std::int64_t sent = now();
    host_mail_->question = ++number_;
    for (int looks = 0; host_mail_->answer != number_; ++looks) {
      if (now() - sent > 1'000'000'000)
        throw Timeout(fmt::format("clock alignment: GPU {} does not answer the host", own.device));
      if (looks > kLooks) std::this_thread::yield();
    }
    exchanges.push_back({sent, static_cast<std::int64_t>(host_mail_->time), now()});
  }
  check(cudaStreamSynchronize(own.stream), "clock alignment");
  return trace::estimate_offset(exchanges, kTimerStepNs);
}

void Clocks::set(Pair& pair, const trace::ClockOffset& offset) const {
  if (!aligned_) pair.first = offset;
  pair.last = offset;
}

/// Compares GPUs of other hosts with PE 0's: by their hosts' clocks, which the GPUs of each host know. `own` is the
/// clock of this process's GPU minus that of its host.
void Clocks::compare_far(const trace::ClockOffset& own) {
  const auto as_number = [](auto value) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)); };
  const std::vector<trace::ClockOffset> hosts = meetings_.compare_hosts();
  const std::vector<std::uint64_t> offsets = meetings_.numbers(as_number(own.offset));
  const std::vector<std::uint64_t> errors = meetings_.numbers(as_number(own.error));
  const std::vector<std::uint64_t> bounds = meetings_.numbers(as_number(own.bound));
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    if (!pes_[pe].is_far) continue;
    trace::ClockOffset offset;
    offset.at = own.at + own.offset;
    offset.offset = static_cast<std::int64_t>(offsets[pe]) + hosts[pe].offset - static_cast<std::int64_t>(offsets[0]);
    offset.error = static_cast<double>(errors[pe] + errors[0]) + hosts[pe].error;
    offset.bound = static_cast<double>(bounds[pe] + bounds[0]) + hosts[pe].bound;
    set(offsets_[pe], offset);
  }
}

/// All processes count the exchanges of PE 0's, which compares its GPU with its host. With several hosts, each process
/// does.
void Clocks::align() {
  for (std::size_t i = 0; i < pes_.size(); ++i)
    if (has_own_clock(i) && !pes_[i].is_far) set(offsets_[i], with_peer(pes_[i]));
  const auto own = std::find_if(pes_.begin(), pes_.end(), [](const ClockPe& pe) { return pe.stream != nullptr; });
  if (meetings_.compare_hosts != nullptr || own == pes_.begin())
    set(host_, with_host(*own));
  else
    number_ += kRounds;
  if (meetings_.compare_hosts) compare_far(host_.last);
  aligned_ = true;
}

std::vector<trace::ClockMap> Clocks::maps() const {
  std::vector<trace::ClockMap> maps;
  for (std::size_t i = 0; i < pes_.size(); ++i)
    maps.push_back(has_own_clock(i) ? trace::ClockMap(offsets_[i].first, offsets_[i].last) : trace::ClockMap());
  return maps;
}

trace::ClockMap Clocks::host() const { return {host_.first, host_.last}; }

std::int64_t Clocks::least_delay() const {
  double least = 0;
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    const double bound = offsets_[pe].last.bound;
    if (!pes_[pe].is_far && bound > 0 && (least == 0 || bound < least)) least = bound;
  }
  return static_cast<std::int64_t>(least);
}

}  // namespace tandem::cuda
