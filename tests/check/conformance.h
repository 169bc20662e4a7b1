#pragma once
/// Small labelled programs: pairs of accesses, how they are ordered, and whether that is a race. After the taxonomies
/// of the literature on races of one-sided communication (local or remote access; put, get, atomic; one origin or two).

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "tandem/barrier.h"
#include "tandem/check.h"

namespace tandem::check_test {

/// Buffers of every program. PE 0 is the origin, PE 1 the target, PE 2 a second origin.
struct Env {
  static constexpr Size kCount = 32;

  Symm<float> data, other;
  float* local = nullptr;   // source of puts, destination of gets
  float* result = nullptr;  // which no other kernel reads
  Signals words;
  Symm<Epoch> cell;  // for atomics
  Symm<LLPacket> packets;
  TeamBarrier barrier;
};

// Labels of programs.
constexpr bool kRacy = true;
constexpr bool kClean = false;

enum class Place { kEverywhere, kOneNode, kManyNodes };

struct LabelledProgram {
  std::string name;
  bool racy = false;
  Place place = Place::kEverywhere;
  std::function<void(World&, const Env&)> run;
};

template <class Body>
struct Kernel {
  struct Args {
    Body body;
    Env env;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    a.body(block, a.env);
  }
};

template <class Body>
void launch(Stream& stream, const Env& env, const Body& body) {
  stream.launch<Kernel<Body>>({1, 512}, {body, env});
}

inline Env make_env(World& world) {
  SymmetricHeap& heap = world.heap();
  Env env;
  env.data = heap.allocate<float>(Env::kCount, "data");
  env.other = heap.allocate<float>(Env::kCount, "other");
  env.local = heap.allocate_local<float>(Env::kCount, "local");
  env.result = heap.allocate_local<float>(Env::kCount, "result");
  env.words = heap.signals(16, "words");
  env.cell = heap.allocate<Epoch>(4, "cell");
  env.packets = heap.allocate<LLPacket>(128, "packets");
  env.barrier = make_team_barrier(world, world.team(), 4);
  const std::vector<std::byte> zeros(Env::kCount * sizeof(float));
  const auto clear = [&](void* memory, Size bytes) { world.copy_in(memory, zeros.data(), bytes); };
  for (float* const data : {env.data.local(), env.other.local(), env.local})
    clear(data, Env::kCount * Size{sizeof(float)});
  clear(env.cell.local(), 4 * Size{sizeof(Epoch)});
  world.barrier();
  return env;
}

class Programs {
 public:
  /// A kernel of one block.
  template <class Body>
  void kernel(const std::string& name, bool racy, const Body& body, Place place = Place::kEverywhere, int blocks = 1) {
    all_.push_back({name, racy, place, [body, blocks](World& world, const Env& env) {
                      Stream stream = world.make_stream("main");
                      stream.launch<Kernel<Body>>({blocks, 512}, {body, env});
                      stream.synchronize();
                    }});
  }
  void host(const std::string& name, bool racy, std::function<void(World&, const Env&)> run,
            Place place = Place::kEverywhere) {
    all_.push_back({name, racy, place, std::move(run)});
  }
  const std::vector<LabelledProgram>& all() const { return all_; }

 private:
  std::vector<LabelledProgram> all_;
};

// Constants of most programs.
inline constexpr Size kN = Env::kCount;

template <class Block>
void put(Block& block, const Env& e, int pe = 1) {
  block.put(e.data, e.local, kN, pe);
}
template <class Block>
void read(Block& block, const Env& e, const float* from) {
  block.store(e.result, {0, kN}, block.template load<float>(from, {0, kN}));
}
template <class Block>
void write(Block& block, float* to, Range range = {0, kN}) {
  block.store(to, range, Block::template FragmentOf<float>::filled(range.size(), 1));
}
/// So that a race is not found by its accesses' coming in the wrong order, but by their having none.
template <class Block>
void be_late(Block& block, const Env& e) {
  for (int i = 0; i < 2000; ++i) (void)block.signal_test(e.words + 15, Cmp::kGe, 1);
}

// The sets.
void add_put_programs(Programs& programs);
void add_get_programs(Programs& programs);
void add_store_programs(Programs& programs);
void add_signal_programs(Programs& programs);
void add_wait_programs(Programs& programs);
void add_order_programs(Programs& programs);
void add_atomic_programs(Programs& programs);
void add_packet_programs(Programs& programs);
void add_stream_programs(Programs& programs);
void add_lane_programs(Programs& programs);
void add_role_programs(Programs& programs);
void add_gemm_programs(Programs& programs);

}  // namespace tandem::check_test
