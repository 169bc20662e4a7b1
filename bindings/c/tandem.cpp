#include "tandem.h"

#include <algorithm>
#include <cstring>

#include "base/version.h"
#include "guard.h"

static_assert(TANDEM_UNIQUE_ID_BYTES == tandem::UniqueId::kBytes);
static_assert(TANDEM_F64 - TANDEM_F32 == static_cast<int>(tandem::DType::kF64) &&
              TANDEM_I8 - TANDEM_F32 == static_cast<int>(tandem::DType::kI8));
static_assert(TANDEM_SUM == static_cast<int>(tandem::ReduceOp::kSum) &&
              TANDEM_AVG == static_cast<int>(tandem::ReduceOp::kAvg));

namespace {

using tandem::Collective;
using tandem::InvalidArgument;
using tandem::Size;
using tandem::UniqueId;
using tandem::c::given;
using tandem::c::guarded;
using tandem::c::InWorld;
using tandem::c::size_of_c;
using tandem::c::type_of;
using tandem::c::worlds;

tandem::c::Controls controls_of(const tandem_options& options) {
  return tandem::c::parse_controls(options.max_blocks, options.algorithms);
}

/// With zeros where there are none.
tandem_options checked(const tandem_options* options) {
  const tandem_options all = options != nullptr ? *options : tandem_options{};
  size_of_c(all.heap_bytes, "heap_bytes");
  size_of_c(all.staging_bytes, "staging_bytes");
  size_of_c(all.heap_limit_bytes, "heap_limit_bytes");
  if (all.any_memory != 0 && all.any_memory != 1)
    throw InvalidArgument(fmt::format("any_memory: {} given, allowed is 0 or 1", all.any_memory));
  const auto check_seconds = [](double given, const char* what) {
    if (!(given >= 0)) throw InvalidArgument(fmt::format("{}: {} given, allowed is 0 or more", what, given));
  };
  check_seconds(all.timeout_s, "timeout_s");
  check_seconds(all.arrival_timeout_s, "arrival_timeout_s");
  check_seconds(all.join_timeout_s, "join_timeout_s");
  tandem::c::one_of(all.device, TANDEM_ANY_DEVICE, TANDEM_HOST, "device", "tandem_device");
  controls_of(all);
  return all;
}

tandem::ReduceOp op_of(tandem_op op) {
  return static_cast<tandem::ReduceOp>(tandem::c::one_of(op, TANDEM_SUM, TANDEM_AVG, "op", "tandem_op"));
}

template <class T>
T or_default(T given, T otherwise) {
  return given == T{} ? otherwise : given;
}

std::size_t staging_of(const tandem_options& options) {
  return or_default(options.staging_bytes, std::size_t{64} << 20);
}

/// `pes`: at most so many.
tandem::WorldOptions world_options(const tandem_options& options, int pes) {
  constexpr std::size_t default_heap = std::size_t{256} << 20;
  // The addresses of all PEs' heaps are reserved in each process, 32 TiB at most by default.
  const auto all_pes = static_cast<std::size_t>(std::max(pes, 1));  // wrong numbers are refused later
  const std::size_t default_limit = std::min(std::size_t{128} << 30, (std::size_t{32} << 40) / all_pes);
  constexpr std::size_t for_plans = std::size_t{64} << 20;
  // The staging of a SendRecvGroup with its default number of lanes.
  const std::size_t for_messages = std::size_t{256} << 10 << (pes > 64 ? 0 : 6);
  tandem::WorldOptions all;
  const std::size_t own =
      2 * staging_of(options) + for_plans + for_messages * static_cast<std::size_t>(pes > 64 ? pes : 1);
  all.heap_bytes = static_cast<Size>(or_default(options.heap_bytes, default_heap) + own);
  all.heap_limit_bytes = static_cast<Size>(or_default(options.heap_limit_bytes, default_limit) + own);
  all.timeout_s = or_default(options.timeout_s, all.timeout_s);
  all.arrival_timeout_s = or_default(options.arrival_timeout_s, all.arrival_timeout_s);
  all.join_timeout_s = or_default(options.join_timeout_s, all.join_timeout_s);
  if (options.device == TANDEM_GPU) all.kind = tandem::DeviceKind::kGpu;
  if (options.device == TANDEM_HOST) all.kind = tandem::DeviceKind::kHost;
  return all;
}

tandem_world* kept(std::unique_ptr<tandem::WorldProcess> process, const tandem_options& options) {
  tandem::c::CWorld world(std::move(process), static_cast<Size>(staging_of(options)), options.any_memory != 0,
                          controls_of(options));
  return worlds().keep(std::unique_ptr<tandem_world>(new tandem_world{std::move(world)}));
}

tandem_world* create(const tandem::Placement& place, const tandem_options& options) {
  tandem::WorldOptions all = world_options(options, place.pes);
  tandem::world::Devices& devices = tandem::world::devices_of(all.kind);
  devices.require_any();
  all.kind = devices.kind();
  all.device = devices.current();
  return kept(std::make_unique<tandem::WorldProcess>(place, all), options);
}

tandem_status run(tandem_world* world, Collective collective, const void* in, void* out, size_t count,
                  tandem_dtype type, tandem_op op, int root, void* stream) {
  return guarded([&] {
    InWorld(world)->run({{collective, type_of(type), op_of(op), root}, in, out, size_of_c(count, "count"), stream});
  });
}

tandem_status run_quantised(tandem_world* world, Collective collective, const void* in, void* out, size_t count,
                            tandem_dtype type, tandem_wire wire, void* stream) {
  static_assert(TANDEM_WIRE_FP8 == static_cast<int>(tandem::WireFormat::kFp8) &&
                TANDEM_WIRE_INT8 == static_cast<int>(tandem::WireFormat::kInt8));
  return guarded([&] {
    const auto format = static_cast<tandem::WireFormat>(
        tandem::c::one_of(wire, TANDEM_WIRE_FP8, TANDEM_WIRE_INT8, "wire", "tandem_wire"));
    const tandem::c::Operation what{collective, type_of(type), tandem::ReduceOp::kSum, 0, format};
    InWorld(world)->run({what, in, out, size_of_c(count, "count"), stream});
  });
}

}  // namespace

const char* tandem_version(void) { return tandem::version(); }
const char* tandem_last_error(void) { return tandem::c::last_error().c_str(); }

tandem_status tandem_unique_id_create(void* id, const char* address) {
  return guarded([&] {
    given(static_cast<char*>(id), "id");
    const UniqueId made = address != nullptr ? UniqueId::create(address) : UniqueId::create();
    std::memcpy(id, made.bytes().data(), UniqueId::kBytes);
  });
}

tandem_status tandem_world_create(tandem_world** world, const void* id, int pe, int pes,
                                  const tandem_options* options) {
  return guarded([&] {
    const auto* const bytes = static_cast<const std::byte*>(id);
    given(world, "world") = nullptr;
    given(bytes, "id");
    const UniqueId parsed = UniqueId::from_bytes({bytes, UniqueId::kBytes});
    *world = create({parsed, pe, pes, pe, pes}, checked(options));
  });
}

tandem_status tandem_world_from_environment(tandem_world** world, const tandem_options* options) {
  return guarded([&] {
    given(world, "world") = nullptr;
    const tandem_options all = checked(options);
    *world = create(tandem::placement_from_environment(or_default(all.join_timeout_s, 600.0)), all);
  });
}

tandem_status tandem_world_destroy(tandem_world* world) {
  return guarded([&] {
    if (world == nullptr) return;
    std::unique_ptr<tandem::world::CurrentDevice> current;
    {
      const auto use = worlds().at(world, "world");
      if (use->plans > 0)
        throw InvalidArgument(
            fmt::format("world: {} plans of it are left, allowed is none: destroy them first", use->plans));
      current = tandem::c::current_unless_lost(use->world);
    }
    worlds().destroy(world, "world", [](tandem_world& left) { left.world.process().leave(); });
  });
}

tandem_status tandem_world_split(tandem_world** part, tandem_world* world, int color, int key,
                                 const tandem_options* options) {
  return guarded([&] {
    given(part, "part") = nullptr;
    const InWorld whole(world);
    const tandem_options all = checked(options);
    auto process = whole->process().split(color, key, world_options(all, whole->pes()));
    if (process != nullptr) *part = kept(std::move(process), all);
  });
}

tandem_status tandem_world_abort(tandem_world* world, const char* why) {
  return guarded(
      [&] { worlds().at_the_end(world, "world")->world.process().abort(why != nullptr ? why : "no reason given"); });
}

tandem_status tandem_world_error(tandem_world* world) {
  return guarded([&] { worlds().at_the_end(world, "world")->world.process().check(); });
}

tandem_device tandem_device_of(const tandem_world* world) {
  if (!worlds().has(world)) return TANDEM_ANY_DEVICE;
  return world->world.kind() == tandem::DeviceKind::kGpu ? TANDEM_GPU : TANDEM_HOST;
}

int tandem_pe(const tandem_world* world) { return worlds().has(world) ? world->world.pe() : -1; }
int tandem_num_pes(const tandem_world* world) { return worlds().has(world) ? world->world.pes() : 0; }

tandem_status tandem_alloc(tandem_world* world, size_t bytes, void** pointer) {
  return guarded([&] {
    given(pointer, "pointer") = nullptr;
    *pointer = InWorld(world)->allocate(size_of_c(bytes, "bytes"));
  });
}

tandem_status tandem_free(tandem_world* world, void* pointer) {
  return guarded([&] { InWorld(world)->free(pointer); });
}

tandem_status tandem_register(tandem_world* world, void* pointer, size_t bytes) {
  return guarded([&] { InWorld(world)->register_memory(pointer, size_of_c(bytes, "bytes")); });
}

tandem_status tandem_unregister(tandem_world* world, void* pointer) {
  return guarded([&] { InWorld(world)->unregister_memory(pointer); });
}

tandem_status tandem_all_reduce(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                tandem_op op, void* stream) {
  return run(world, Collective::kAllReduce, in, out, count, type, op, 0, stream);
}

tandem_status tandem_reduce(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                            tandem_op op, int root, void* stream) {
  return run(world, Collective::kReduce, in, out, count, type, op, root, stream);
}

tandem_status tandem_reduce_scatter(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                    tandem_op op, void* stream) {
  return run(world, Collective::kReduceScatter, in, out, count, type, op, 0, stream);
}

tandem_status tandem_all_gather(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                void* stream) {
  return run(world, Collective::kAllGather, in, out, count, type, TANDEM_SUM, 0, stream);
}

tandem_status tandem_all_to_all(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                                void* stream) {
  return run(world, Collective::kAllToAll, in, out, count, type, TANDEM_SUM, 0, stream);
}

tandem_status tandem_broadcast(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type,
                               int root, void* stream) {
  return run(world, Collective::kBroadcast, in, out, count, type, TANDEM_SUM, root, stream);
}

tandem_status tandem_gather(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type, int root,
                            void* stream) {
  return run(world, Collective::kGather, in, out, count, type, TANDEM_SUM, root, stream);
}

tandem_status tandem_scatter(tandem_world* world, const void* in, void* out, size_t count, tandem_dtype type, int root,
                             void* stream) {
  return run(world, Collective::kScatter, in, out, count, type, TANDEM_SUM, root, stream);
}

tandem_status tandem_all_reduce_quantised(tandem_world* world, const void* in, void* out, size_t count,
                                          tandem_dtype type, tandem_wire wire, void* stream) {
  return run_quantised(world, Collective::kAllReduce, in, out, count, type, wire, stream);
}

tandem_status tandem_reduce_scatter_quantised(tandem_world* world, const void* in, void* out, size_t count,
                                              tandem_dtype type, tandem_wire wire, void* stream) {
  return run_quantised(world, Collective::kReduceScatter, in, out, count, type, wire, stream);
}

tandem_status tandem_all_gather_quantised(tandem_world* world, const void* in, void* out, size_t count,
                                          tandem_dtype type, tandem_wire wire, void* stream) {
  return run_quantised(world, Collective::kAllGather, in, out, count, type, wire, stream);
}

tandem_status tandem_synchronize(tandem_world* world, void* stream) {
  return guarded([&] { InWorld(world)->synchronize(stream); });
}

tandem_status tandem_barrier(tandem_world* world) {
  return guarded([&] { InWorld(world)->barrier(); });
}

tandem_status tandem_barrier_on(tandem_world* world, void* stream) {
  return guarded([&] { InWorld(world)->barrier_on(stream); });
}
