// Worlds whose memory has fabric handles, as that of GPUs may have. Hosts reach each other only within an IMEX domain.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "host/world/devices.h"
#include "tandem/error.h"
#include "world/peer.h"

namespace tandem::test {

namespace {

/// A handle names the domain, and a file of the process that has the memory.
class FabricMemory final : public host::HostMemory {
 public:
  std::string lacks(int, world::Handles) override { return ""; }
  Bytes export_fabric(world::MemoryHandle handle) override {
    return Writer().text(domain()).text(fmt::format("/proc/{}/fd/{}", ::getpid(), handle)).result();
  }
  world::MemoryHandle import_fabric(View bytes) override {
    Reader reader(bytes);
    if (reader.text() != domain()) throw RuntimeFailure("not in this IMEX domain");
    const int file = ::open(reader.text().c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) throw RuntimeFailure("no such memory");
    return static_cast<world::MemoryHandle>(file);
  }

 private:
  static std::string domain() { return std::getenv("TANDEM_TEST_DOMAIN"); }
};

class FabricDevices final : public host::HostDevices {
 public:
  world::DeviceMemory& memory() override { return memory_; }

 private:
  FabricMemory memory_;
};

void run_in_domain(const PeerPlace& place, const std::string& domain, int node_size) {
  ::setenv("TANDEM_TEST_DOMAIN", domain.c_str(), 1);
  FabricDevices devices;
  const world::ReplacedDevices replaced(devices);
  WorldProcess process(place.id, place.pe, place.pes, options());
  const int found = process.world().team().node_size;
  expect(found == node_size, fmt::format("nodes of {} PEs, not of {}", node_size, found));
  check_all_reduce(process.world());
  const Symm<int> word = process.world().heap().allocate<int>(1, "word");
  const int own = place.pe + 1;
  process.world().copy_in(word.on((place.pe + 1) % place.pes), &own, Size{sizeof own});
  process.world().barrier();
  expect(*word.local() == (place.pe + place.pes - 1) % place.pes + 1, "the word of the PE before");
}

}  // namespace

const Programs& programs_of_fabric() {
  static const Programs all{
      {"share_a_domain", [](const PeerPlace& place) { run_in_domain(place, "one", place.pes); }},
      {"have_a_domain_each",
       [](const PeerPlace& place) { run_in_domain(place, std::getenv("TANDEM_HOST"), place.pes / 2); }},
  };
  return all;
}

}  // namespace tandem::test
