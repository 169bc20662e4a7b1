#include "bootstrap/rendezvous/job_port.h"

#include <fmt/format.h>

#include <utility>

#include "bootstrap/protocol/socket.h"
#include "tandem/error.h"

namespace tandem::bootstrap {

Key secret_of_world(const Key& secret, std::uint64_t world) {
  return world == 0 ? secret : derive(secret, "world of a job", Writer().u64(world).result());
}

JobPort::JobPort(const std::string& address, std::uint16_t port, const Key& secret) : contents_{address, 0, secret} {
  kept_->listener = listen_tcp(address, port);
  contents_.port = port_of(kept_->listener);
}

std::unique_ptr<Host> JobPort::next(const Deadline& deadline) {
  std::unique_lock lock(kept_->mutex);
  if (!kept_->changed.wait_until(lock, deadline.at(), [&] { return static_cast<bool>(kept_->listener); }))
    throw Timeout(fmt::format("rendezvous at {} port {}: the job's world before has not come together",
                              contents_.address, contents_.port));
  IdContents contents = contents_;
  contents.secret = secret_of_world(contents_.secret, worlds_);
  auto host = std::make_unique<Host>(contents, kept_->listener, [kept = kept_](Fd back) {
    const std::lock_guard back_lock(kept->mutex);
    kept->listener = std::move(back);
    kept->changed.notify_one();
  });
  ++worlds_;
  return host;
}

}  // namespace tandem::bootstrap
