#include "world/pes/stream.h"

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem::world {

void PeStream::launch(detail::KernelLaunch kernel) {
  pes_.check_launch(kernel);
  if (kernel.team.me < 0)
    throw InvalidArgument(fmt::format("launch of {}: PE {} is not a member of the team", kernel.name(), pe_));
  stream_->launch(kernel, pes_.context(kernel.team));
}

void PeStream::copy(void* to, const void* from, Size bytes) {
  if (bytes < 0) throw InvalidArgument(fmt::format("copy_async: {} bytes given, must not be negative", bytes));
  if (bytes > 0) stream_->copy(context_, to, from, bytes);
}

void PeStream::wait(const std::shared_ptr<detail::EventState>& event) {
  if (event == nullptr) throw InvalidArgument("wait: the event was never recorded");
  stream_->wait(event);
}

void PeStream::synchronize() {
  stream_->synchronize();
  const volatile WaitReport& report = *pes_.pe(pe_).report;
  if (report.set != 0) {
    pes_.end_gets(pe_);
    bootstrap::Failure failure = abort_report(pes_, pe_);
    pes_.abort_waits(pe_, failure);
    failure.text = fmt::format("PE {}: {}", pe_, failure.text);
    failure.raise();
  }
  const std::uint32_t by = report.ended_by;
  if (auto end = pes_.end(pe_, by == 0 ? std::nullopt : std::optional(by))) {
    pes_.end_gets(pe_);
    if (const std::string own = ended_wait_of(pes_, pe_); !own.empty()) end->text += "; " + own;
    end->raise();
  }
}

}  // namespace tandem::world
