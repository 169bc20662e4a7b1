#include "tandem/advanced/placement.h"

#include <fmt/format.h>

#include <atomic>

#include "bootstrap/local/environment.h"
#include "bootstrap/rendezvous/id_contents.h"

namespace tandem {

bootstrap::Key bootstrap::key_of_job(const Places& places, int world) {
  return derive({}, fmt::format("{}user={};pes={};world={}", places.job, ::geteuid(), places.pes, world));
}

namespace {

UniqueId meet(const bootstrap::Places& places, double timeout_s) {
  static std::atomic<int> worlds{0};
  const bootstrap::Key job = bootstrap::key_of_job(places, worlds++);
  if (places.pe != 0) return bootstrap::take_id(job, places.pe, places.pes, bootstrap::Deadline(timeout_s));
  if (places.pes == 1) return UniqueId::create();
  return bootstrap::open_rendezvous("127.0.0.1", bootstrap::random_key(), bootstrap::open_hand_off(job, places.pes));
}

}  // namespace

Placement placement_from_environment(double timeout_s) {
  const bootstrap::Places places = bootstrap::read_places(bootstrap::variable_of_process);
  const auto text = bootstrap::variable_of_process("TANDEM_UNIQUE_ID");
  return {text ? UniqueId::from_text(*text) : meet(places, timeout_s), places.pe, places.pes, places.local_pe,
          places.local_pes};
}

}  // namespace tandem
