#include "world/memory/handles.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "tandem/error.h"

namespace tandem::world {

namespace {

/// Returns TANDEM_HANDLES; empty if the environment leaves the choice.
std::string chosen() {
  const char* const text = std::getenv("TANDEM_HANDLES");
  std::string choice = text == nullptr ? "" : text;
  if (!choice.empty() && choice != "fd" && choice != "fabric")
    throw InvalidArgument(fmt::format("TANDEM_HANDLES: '{}' given, allowed are fd and fabric", choice));
  return choice;
}

/// Returns why this process cannot use descriptors; empty if it can.
std::string lacks_descriptors(const bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange,
                              Devices& devices, int device) {
  if (chosen() == "fabric") return "TANDEM_HANDLES is fabric";
  for (int pe = 0; pe < member.size() && !devices.has_mailbox(); ++pe)
    if (!exchange.is_on_this_host(pe))
      return fmt::format("PE {} is on another host, or in another network name space", pe);
  return devices.memory().lacks(device, Handles::kDescriptors);
}

std::string lacks_fabric(DeviceMemory& memory, int device) {
  return chosen() == "fd" ? "TANDEM_HANDLES is fd" : memory.lacks(device, Handles::kFabric);
}

/// By PE; empty: it has not been imported.
using Chunks = std::vector<std::vector<Chunk>>;

void exchange_descriptors(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange, DeviceMemory& memory,
                          const std::vector<Chunk>& own, Chunks& all) {
  std::vector<bootstrap::Fd> exported;
  std::vector<int> numbers;
  member.all_or_none("memory is exported", [&] {
    for (const Chunk& chunk : own) {
      exported.emplace_back(memory.export_descriptor(chunk.handle));
      numbers.push_back(exported.back().get());
    }
  });
  const Team host = exchange.host_team();
  const auto received = exchange.exchange(numbers, host);
  member.all_or_none("memory is imported", [&] {
    for (std::size_t member_number = 0; member_number < received.size(); ++member_number)
      for (std::size_t i = 0; i < received[member_number].size(); ++i) {
        const Size bytes = own.at(i).bytes;
        const auto pe = static_cast<std::size_t>(host.first) + member_number;
        all[pe].push_back({memory.import_descriptor(received[member_number][i].get(), bytes), bytes});
      }
  });
}

void exchange_fabric(bootstrap::WorldMember& member, DeviceMemory& memory, const std::vector<Chunk>& own, Chunks& all) {
  // Any process that has a handle and an IMEX channel can map the memory.
  const bootstrap::Key key = bootstrap::derive(member.secret(), "fabric handles");
  Writer writer;
  member.all_or_none("memory is exported", [&] {
    for (const Chunk& chunk : own) writer.bytes(bootstrap::encrypt(key, memory.export_fabric(chunk.handle)));
  });
  const std::vector<Bytes> blobs = member.all_gather(writer.result(), "fabric handles");
  member.all_or_none("memory is imported", [&] {
    for (std::size_t pe = 0; pe < blobs.size(); ++pe) {
      if (pe == static_cast<std::size_t>(member.pe())) continue;
      Reader reader(blobs[pe]);
      for (const Chunk& its : own) {
        const auto bytes = bootstrap::decrypt(key, reader.bytes());
        if (!bytes) throw RuntimeFailure(fmt::format("no fabric handle of PE {}", pe));
        all[pe].push_back({memory.import_fabric(*bytes), its.bytes});
      }
    }
  });
}

/// Returns why a way is closed, from the first PE that cannot use it; empty if it is open to all.
std::string first_problem(bootstrap::WorldMember& member, const std::string& own) {
  const std::vector<Bytes> all = member.all_gather(Writer().text(own).result(), "handles of memory");
  for (std::size_t pe = 0; pe < all.size(); ++pe)
    if (const std::string its = Reader(all[pe]).text(); !its.empty()) return fmt::format("PE {}: {}", pe, its);
  return "";
}

}  // namespace

bool shares_across_hosts(bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange, Devices& devices,
                         int device) {
  if (exchange.host_team().size == member.size()) return false;
  return first_problem(member, lacks_fabric(devices.memory(), device)).empty();
}

Handles agree_on_handles(bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange, Devices& devices,
                         int device) {
  DeviceMemory& memory = devices.memory();
  if (shares_across_hosts(member, exchange, devices, device)) return Handles::kFabric;
  const std::string no_descriptors = first_problem(member, lacks_descriptors(member, exchange, devices, device));
  if (no_descriptors.empty()) return Handles::kDescriptors;
  const std::string no_fabric = first_problem(member, lacks_fabric(memory, device));
  if (no_fabric.empty()) return Handles::kFabric;
  throw Unsupported(
      fmt::format("{} backend: memory cannot be handed to other processes by file descriptors ({}), nor by fabric "
                  "handles ({}); run the PEs as threads of one process",
                  devices.name(), no_descriptors, no_fabric));
}

std::vector<std::vector<Chunk>> exchange_chunks(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange,
                                                DeviceMemory& memory, Handles handles, const std::vector<Chunk>& own) {
  Chunks all(static_cast<std::size_t>(member.size()));
  try {
    handles == Handles::kFabric ? exchange_fabric(member, memory, own, all)
                                : exchange_descriptors(member, exchange, memory, own, all);
  } catch (...) {
    for (const std::vector<Chunk>& chunks : all) release(memory, chunks);
    throw;
  }
  return all;
}

void release(DeviceMemory& memory, const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks) memory.release(chunk.handle);
}

}  // namespace tandem::world
