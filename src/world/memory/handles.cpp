#include "world/memory/handles.h"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/log.h"
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

/// Any process that has a handle and an IMEX channel can map the memory.
bootstrap::Key fabric_key(const bootstrap::WorldMember& member) {
  return bootstrap::derive(member.secret(), "fabric handles");
}

void exchange_fabric(bootstrap::WorldMember& member, const Team& sharing, DeviceMemory& memory,
                     const std::vector<Chunk>& own, Chunks& all) {
  const bootstrap::Key key = fabric_key(member);
  Writer writer;
  member.all_or_none("memory is exported", [&] {
    for (const Chunk& chunk : own) writer.bytes(bootstrap::encrypt(key, memory.export_fabric(chunk.handle)));
  });
  const std::vector<Bytes> blobs = member.all_gather(writer.result(), "fabric handles");
  member.all_or_none("memory is imported", [&] {
    for (int pe = sharing.first; pe < sharing.first + sharing.size; ++pe) {
      if (pe == member.pe()) continue;
      const auto at = static_cast<std::size_t>(pe);
      Reader reader(blobs[at]);
      for (const Chunk& its : own) {
        const auto bytes = bootstrap::decrypt(key, reader.bytes());
        if (!bytes) throw RuntimeFailure(fmt::format("no fabric handle of PE {}", pe));
        all[at].push_back({memory.import_fabric(*bytes), its.bytes});
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

/// A piece of memory with a fabric handle, to be tried.
class Sample {
 public:
  Sample(DeviceMemory& memory, int device)
      : memory_(memory),
        handle_(memory.create(device, Handles::kFabric, memory.granularity(device, Handles::kFabric))) {}
  ~Sample() { memory_.release(handle_); }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  Bytes exported() const { return memory_.export_fabric(handle_); }

 private:
  DeviceMemory& memory_;
  MemoryHandle handle_;
};

/// Returns why this process does not reach memory of a PE on another host; empty if it reaches all. GPUs may have
/// fabric handles and belong to different IMEX domains, so each PE imports a piece of each other one's memory.
/// Collective.
std::string lacks_reach(bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange, DeviceMemory& memory,
                        int device) {
  const bootstrap::Key key = fabric_key(member);
  std::unique_ptr<Sample> sample;
  Writer own;
  std::string problem;
  try {
    sample = std::make_unique<Sample>(memory, device);
    own.bytes(bootstrap::encrypt(key, sample->exported()));
  } catch (const std::exception& error) {
    problem = error.what();
    own.bytes({});
  }
  const std::vector<Bytes> all = member.all_gather(own.result(), "samples of memory");
  for (int pe = 0; pe < member.size() && problem.empty(); ++pe) {
    if (exchange.is_on_this_host(pe)) continue;
    try {
      const auto bytes = bootstrap::decrypt(key, Reader(all[static_cast<std::size_t>(pe)]).bytes());
      if (bytes) memory.release(memory.import_fabric(*bytes));
    } catch (const std::exception& error) {
      problem = fmt::format("the memory of PE {} on host {}: {}", pe, exchange.host_name_of(pe), error.what());
    }
  }
  return first_problem(member, problem);  // the sample lives until all have tried it
}

/// Returns whether the PEs of all hosts reach each other's memory. Collective.
bool shares_across_hosts(bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange, DeviceMemory& memory,
                         int device) {
  if (exchange.host_team().size == member.size()) return false;
  std::string problem = first_problem(member, lacks_fabric(memory, device));
  if (problem.empty()) problem = lacks_reach(member, exchange, memory, device);
  if (!problem.empty() && member.pe() == 0)
    log_line(LogLevel::kInfo,
             [&] { return fmt::format("hosts exchange messages, since they share no memory: {}", problem); });
  return problem.empty();
}

}  // namespace

Sharing agree_on_handles(bootstrap::WorldMember& member, const bootstrap::FdExchange& exchange, Devices& devices,
                         int device) {
  DeviceMemory& memory = devices.memory();
  if (shares_across_hosts(member, exchange, memory, device))
    return {Handles::kFabric, {0, 1, member.size(), member.pe()}, true};
  const Team host = exchange.host_team();
  const std::string no_descriptors = first_problem(member, lacks_descriptors(member, exchange, devices, device));
  if (no_descriptors.empty()) return {Handles::kDescriptors, host, false};
  const std::string no_fabric = first_problem(member, lacks_fabric(memory, device));
  if (no_fabric.empty()) return {Handles::kFabric, host, false};
  throw Unsupported(
      fmt::format("{} backend: memory cannot be handed to other processes by file descriptors ({}), nor by fabric "
                  "handles ({}); run the PEs as threads of one process",
                  devices.name(), no_descriptors, no_fabric));
}

std::vector<std::vector<Chunk>> exchange_chunks(bootstrap::WorldMember& member, bootstrap::FdExchange& exchange,
                                                DeviceMemory& memory, const Sharing& sharing,
                                                const std::vector<Chunk>& own) {
  Chunks all(static_cast<std::size_t>(member.size()));
  try {
    sharing.handles == Handles::kFabric ? exchange_fabric(member, sharing.pes, memory, own, all)
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
