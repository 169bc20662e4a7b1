#include "tandem/advanced/placement.h"

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "bootstrap/local/environment.h"
#include "bootstrap/rendezvous/id_contents.h"
#include "bootstrap/rendezvous/job_port.h"
#include "tandem/error.h"

namespace tandem {

bootstrap::Key bootstrap::key_of_job(const Places& places, int world) {
  return derive({}, fmt::format("{}user={};pes={};world={}", places.job, ::geteuid(), places.pes, world));
}

namespace {

using bootstrap::Deadline;
using bootstrap::Key;

constexpr std::size_t kLeastSecret = 32;

/// The processes meet through a local socket, and prove a key that follows from the environment.
UniqueId meet_on_host(const bootstrap::Places& places, int world, const Deadline& deadline) {
  const Key job = bootstrap::key_of_job(places, world);
  if (places.pe != 0) return bootstrap::take_id(job, places.pe, places.pes, deadline);
  if (places.pes == 1) return UniqueId::create();
  return bootstrap::open_rendezvous("127.0.0.1", bootstrap::random_key(), bootstrap::open_hand_off(job, places.pes));
}

Key secret_of_job(const std::string& text, const bootstrap::Places& places) {
  if (text.size() < kLeastSecret)
    throw InvalidArgument(
        fmt::format("TANDEM_SECRET: {} characters given, at least {} are needed (openssl rand -hex 32)", text.size(),
                    kLeastSecret));
  return bootstrap::derive({}, fmt::format("{};{}pes={}", text, places.job, places.pes));
}

/// Waits until PE 0 has opened the port. From then on it stays open.
void wait_for_port(const bootstrap::MeetingPoint& point, const Deadline& deadline) {
  for (;;) {
    try {
      bootstrap::connect_tcp(point.address, point.port, deadline);
      return;
    } catch (const RuntimeFailure&) {
      if (deadline.passed())
        throw Timeout(fmt::format("PE 0 of this job did not open port {} of {} (MASTER_ADDR, TANDEM_PORT)", point.port,
                                  point.address));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

/// The processes meet at a port of PE 0's host, and prove a secret.
UniqueId meet_between_hosts(const bootstrap::Places& places, const Key& secret, int world, const Deadline& deadline) {
  const bootstrap::MeetingPoint point = bootstrap::read_meeting_point(bootstrap::variable_of_process);
  if (places.pe != 0) {
    if (world == 0) wait_for_port(point, deadline);
    const Key own = bootstrap::secret_of_world(secret, static_cast<std::uint64_t>(world));
    return bootstrap::id_of({point.address, point.port, own});
  }
  static bootstrap::JobPort port(point.address, point.port, secret);
  return bootstrap::keep_rendezvous(port.next(deadline));
}

/// The rendezvous of an id may serve several worlds.
UniqueId id_of_world(const std::string& text, int world) {
  bootstrap::IdContents contents = bootstrap::contents_of(UniqueId::from_text(text));
  contents.secret = bootstrap::secret_of_world(contents.secret, static_cast<std::uint64_t>(world));
  return bootstrap::id_of(contents);
}

UniqueId meet(const bootstrap::Places& places, double timeout_s) {
  static std::atomic<int> worlds{0};
  const int world = worlds++;
  const Deadline deadline(timeout_s);
  if (const auto id = bootstrap::variable_of_process("TANDEM_UNIQUE_ID")) return id_of_world(*id, world);
  if (const auto secret = bootstrap::variable_of_process("TANDEM_SECRET"))
    return meet_between_hosts(places, secret_of_job(*secret, places), world, deadline);
  if (places.has_hosts)
    throw InvalidArgument(
        "TANDEM_SECRET: not set in the environment; processes of several hosts need it, or TANDEM_UNIQUE_ID");
  return meet_on_host(places, world, deadline);
}

}  // namespace

Placement placement_from_environment(double timeout_s) {
  const bootstrap::Places places = bootstrap::read_places(bootstrap::variable_of_process);
  return {meet(places, timeout_s), places.pe, places.pes, places.local_pe, places.local_pes};
}

}  // namespace tandem
