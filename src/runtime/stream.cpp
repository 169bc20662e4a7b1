#include "tandem/stream.h"

#include <algorithm>

namespace tandem {

namespace detail {

std::function<void(cpu::Block&)> KernelLaunch::on_cpu() const {
  const std::size_t bytes = type->args_bytes;
  const std::shared_ptr<std::byte[]> copy(new std::byte[bytes]);  // aligned for any Args
  std::copy_n(static_cast<const std::byte*>(args), bytes, copy.get());
  return [run = type->on_cpu, copy](cpu::Block& block) { run(block, copy.get()); };
}

void StreamBackend::check_at_synchronize(const std::shared_ptr<const std::function<void()>>& check) {
  std::erase_if(checks_, [&](const auto& old) { return old.expired() || old.lock() == check; });
  checks_.push_back(check);
}

void StreamBackend::run_checks() const {
  for (const auto& check : checks_)
    if (const auto alive = check.lock()) (*alive)();
}

}  // namespace detail

void Stream::launch(const detail::KernelType& kernel, Grid grid, const void* args, const Team& team, Site site) {
  at(site).launch({&kernel, grid, team, *kernel.device, args});
}

}  // namespace tandem
