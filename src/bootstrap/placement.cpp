#include "tandem/placement.h"

#include <fmt/format.h>

#include <mutex>

#include "bootstrap/environment.h"
#include "bootstrap/kept.h"
#include "bootstrap/offer.h"
#include "bootstrap/seal.h"

namespace tandem {

namespace {

/// The offers of this process and how many worlds it made from the environment.
struct Offers {
  std::mutex mutex;
  bootstrap::Kept<bootstrap::Offer> kept;
  int worlds = 0;
};
Offers& offers() {
  static Offers all;
  return all;
}

std::string meeting_place(const bootstrap::Places& places, int world) {
  const std::string text = fmt::format("{}user={};pes={};world={}", places.job, ::geteuid(), places.pes, world);
  std::string name = "tandem-";
  for (const std::byte byte : bootstrap::derive({}, text)) name += fmt::format("{:02x}", static_cast<int>(byte));
  return name;
}

UniqueId meet(const bootstrap::Places& places, double timeout_s) {
  Offers& all = offers();
  const std::lock_guard lock(all.mutex);
  const std::string name = meeting_place(places, all.worlds++);
  const bootstrap::Deadline deadline(timeout_s);
  if (places.pe != 0) return bootstrap::take_offer(name, deadline);
  const UniqueId id = UniqueId::create();
  if (places.pes > 1) all.kept.add(std::make_unique<bootstrap::Offer>(name, id, places.pes - 1, deadline));
  return id;
}

}  // namespace

Placement placement_from_environment(double timeout_s) {
  const bootstrap::Places places = bootstrap::read_places(bootstrap::variable_of_process);
  const auto text = bootstrap::variable_of_process("TANDEM_UNIQUE_ID");
  return {text ? UniqueId::from_text(*text) : meet(places, timeout_s), places.pe, places.pes, places.local_pe,
          places.local_pes};
}

}  // namespace tandem
