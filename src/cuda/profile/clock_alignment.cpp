#include "cuda/profile/clock_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

constexpr std::size_t kRounds = 1000;

template <class T>
T* pinned(std::size_t count) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocPortable), "cudaHostAlloc");
  return new (memory) T[count]();
}

}  // namespace

Clocks::Clocks(std::vector<ClockPe> pes, std::function<void()> meet)
    : pes_(std::move(pes)), meet_(std::move(meet)), began_(now()), offsets_(pes_.size()) {
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
  if (meet_) meet_();
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

trace::ClockOffset Clocks::with_host() {
  const ClockPe& first = pes_.front();
  check(cudaSetDevice(first.device), "cudaSetDevice");
  std::vector<trace::Exchange> exchanges;
  launch_answers(first.stream, host_mail_, kRounds, number_);
  for (std::size_t i = 0; i < kRounds; ++i) {
    const std::int64_t sent = now();
    host_mail_->question = ++number_;
    while (host_mail_->answer != number_)
      if (now() - sent > 1'000'000'000)
        throw Timeout(fmt::format("clock alignment: GPU {} does not answer the host", first.device));
    exchanges.push_back({sent, static_cast<std::int64_t>(host_mail_->time), now()});
  }
  check(cudaStreamSynchronize(first.stream), "clock alignment");
  return trace::estimate_offset(exchanges, kTimerStepNs);
}

void Clocks::align() {
  const auto set = [this](Pair& pair, const trace::ClockOffset& offset) {
    if (!aligned_) pair.first = offset;
    pair.last = offset;
  };
  for (std::size_t i = 0; i < pes_.size(); ++i)
    if (has_own_clock(i)) set(offsets_[i], with_peer(pes_[i]));
  if (pes_.front().stream != nullptr)
    set(host_, with_host());
  else
    number_ += kRounds;  // all processes count the exchanges of PE 0's
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
  for (const Pair& pair : offsets_)
    if (pair.last.bound > 0 && (least == 0 || pair.last.bound < least)) least = pair.last.bound;
  return static_cast<std::int64_t>(least);
}

}  // namespace tandem::cuda
