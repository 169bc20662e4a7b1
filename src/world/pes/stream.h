#pragma once
/// A PE's stream: a device's stream with the checks and failures of its world.

#include <memory>

#include "world/pes/pes.h"

namespace tandem::world {

class PeStream final : public detail::StreamBackend {
 public:
  PeStream(Pes& pes, int pe, std::unique_ptr<DeviceStream> stream)
      : pes_(pes), pe_(pe), context_(pes.context(pes.team(pe))), stream_(std::move(stream)) {}

  void launch(detail::KernelLaunch kernel) override;
  void gemm(const Gemm& gemm, const Team& team) override { stream_->gemm(gemm, pes_.context(team)); }
  bool adds_up(const Gemm& gemm) const override { return stream_->adds_up(gemm); }
  void copy(void* to, const void* from, Size bytes) override;
  void write_signal(Signal* word, const Epoch* from, Epoch value) override {
    stream_->write_signal(context_, word, from, value);
  }
  void wait_signal(const Signal* word, Epoch value) override { stream_->wait_signal(context_, word, value); }
  std::shared_ptr<detail::EventState> record() override { return stream_->record(); }
  void wait(const std::shared_ptr<detail::EventState>& event) override;
  /// Blocks until the stream is empty. Also throws if the world has ended.
  void synchronize() override;
  void compare_call(const detail::CallComparison& comparison, const Team& team) override {
    stream_->compare_calls(pes_.context(team), comparison);
  }
  Team world_team() const override { return pes_.team(pe_); }
  void* native() override { return stream_->native(); }

 private:
  Pes& pes_;
  int pe_;
  Context context_;  // of the whole world
  std::unique_ptr<DeviceStream> stream_;
};

}  // namespace tandem::world
