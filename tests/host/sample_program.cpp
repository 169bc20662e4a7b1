/// Kernels of collectives and of operators on three PEs in threads, from few sources, so that every build can run them
/// under ThreadSanitizer. The preset `tsan` runs the rest.

#include <functional>

#include "collectives/all_gather/ll.h"
#include "collectives/all_gather/push.h"
#include "collectives/all_reduce/multimem.h"
#include "collectives/all_reduce/ring.h"
#include "collectives/all_reduce/two_shot.h"
#include "collectives/all_reduce/two_shot_ll.h"
#include "collectives/all_to_all/push.h"
#include "collectives/broadcast/pull.h"
#include "collectives/broadcast/staged.h"
#include "collectives/broadcast/tree.h"
#include "collectives/reduce_scatter/push.h"
#include "host/shared_pes.h"
#include "operators/all_gather_gemm/all_gather_push.h"
#include "operators/steps/reduce_shards.h"

namespace {

using namespace tandem;

constexpr int kPes = 3;
constexpr int kBlocks = 2;
constexpr int kRoot = 1;
using Pes = test::SharedPes<kPes>;

void say_if_wrong(const Pes& pes, int pe, const char* name, Size wrong) {
  if (wrong != 0 || pes.gave_up(pe))
    std::printf("%s, PE %d: %lld elements wrong\n", name, pe, static_cast<long long>(wrong));
}

/// The allocations of one PE, in the form of kernels::PlanSetup. All PEs allocate alike.
class Setup {
 public:
  Setup(const Pes& pes, int pe, Size max_count) : pes_(pes), pe_(pe), max_count_(max_count) {}

  Team team() const { return pes_.team(pe_); }
  int pes() const { return kPes; }
  int blocks() const { return kBlocks; }
  Size max_count() const { return max_count_; }
  template <class T>
  Symm<T> symmetric(Size count, const char*) {
    const Size at = next_;
    next_ += round_up(count * Size{sizeof(T)}, 256);
    if (next_ <= Pes::kPartBytes) return pes_.symm<T>(at, pe_);
    std::puts("the memory of a PE is too small");
    std::exit(2);
  }
  Signals signals(Size count, const char* what) { return symmetric<Signal>(count, what); }
  Signals slots(const char* what) { return signals(kBlocks * kPes, what); }
  Epochs epochs() { return {symmetric<Epoch>(kBlocks, "epochs").local()}; }

 private:
  const Pes& pes_;
  int pe_;
  Size max_count_;
  Size next_ = Pes::kWaitWordsBytes;
};

constexpr Size kCount = 5003;  // of every kernel, in its elements
constexpr int kCalls = 3;

/// Small integers, whose sums are exact.
int value(int call, int pe, Size i) { return static_cast<int>((i * 7 + pe * 5 + call) % 31); }
int sum(int call, Size i) {
  int all = 0;
  for (int pe = 0; pe < kPes; ++pe) all += value(call, pe, i);
  return all;
}

/// Calls the kernel several times. `expected(call, pe, i)` is element i of PE `pe`'s output.
template <class Kernel>
void check(const char* name, Size ins, Size outs, const std::function<int(int, int, Size)>& expected,
           Size count = kCount, bool in_place = false) {
  using Args = typename Kernel::Args;
  using E = std::remove_pointer_t<decltype(std::declval<Args>().out.local())>;
  Pes pes;
  Pes::on_all([&](int pe) {
    Setup setup(pes, pe, count);
    Args args = Kernel::prepare(setup);
    const Symm<E> in = setup.symmetric<E>(ins, "in");
    args.in = in;
    args.out = in_place ? in : setup.symmetric<E>(outs, "out");
    args.count = count;
    if constexpr (requires { args.root; }) args.root = kRoot;
    Size wrong = 0;
    for (int call = 0; call < kCalls; ++call) {
      for (Size i = 0; i < ins; ++i) in.local()[i] = static_cast<E>(value(call, pe, i));
      pes.run_grid(pe, kBlocks, [&](cpu::Block& block) { Kernel::run(block, args); });
      for (Size i = 0; i < outs; ++i) wrong += args.out.local()[i] != static_cast<E>(expected(call, pe, i));
    }
    say_if_wrong(pes, pe, name, wrong);
  });
}

void check_collectives() {
  using namespace kernels;
  const auto reduced = [](int call, int, Size i) { return sum(call, i); };
  const auto own_part = [](int call, int pe, Size i) { return sum(call, pe * kCount + i); };
  const auto gathered = [](int call, int, Size i) { return value(call, static_cast<int>(i / kCount), i % kCount); };
  const auto swapped = [](int call, int pe, Size i) {
    return value(call, static_cast<int>(i / kCount), pe * kCount + i % kCount);
  };
  const auto of_root = [](int call, int, Size i) { return value(call, kRoot, i); };
  constexpr Size kAll = kPes * kCount;
  check<AllReduceTwoShot<float>>("all_reduce two_shot", kCount, kCount, reduced);
  check<AllReduceTwoShotLL<float>>("all_reduce two_shot_ll", kCount, kCount, reduced);
  check<AllReduceTwoShotLL128<float>>("all_reduce two_shot_ll128", kCount, kCount, reduced);
  check<AllReduceMultimem<float>>("all_reduce multimem", kCount, kCount, reduced);
  check<AllReduceRing<float>>("all_reduce ring", kCount, kCount, reduced);
  check<ReduceScatterPush<float>>("reduce_scatter push", kAll, kCount, own_part);
  check<AllGatherPush>("all_gather push", kCount, kAll, gathered);
  check<AllGatherPackets<LLPacket>>("all_gather ll", kCount, kAll, gathered);
  check<AllToAllPush>("all_to_all push", kAll, kAll, swapped);
  check<BroadcastTree<2>>("broadcast tree", kCount, kCount, of_root);
  constexpr Size kLarge = Size{kBlocks} << 20;  // of which the root stores a part
  check<BroadcastPull>("broadcast pull", kLarge, kLarge, of_root, kLarge, true);
  check<BroadcastStaged>("broadcast staged", kLarge, kLarge, of_root, kLarge);
}

/// One fused GEMM of f32, and the kernel that works beside it.
class Layer {
 public:
  static constexpr Size kRows = 97, kColumns = 40, kDepth = 24;

  Layer(Pes& pes, int pe) : pes_(pes), pe_(pe), setup_(pes, pe, 0), rows_{kRows, kPes, 2, 16}, b_(kColumns * kDepth) {
    epoch_ = setup_.symmetric<Epoch>(1, "epoch").local();
    *epoch_ = 1;
    for (Size i = 0; i < kColumns * kDepth; ++i) b_[static_cast<std::size_t>(i)] = b_of(pe, i);
    gemm_.m = kRows;
    gemm_.n = kColumns;
    gemm_.k = kDepth;
    gemm_.type = gemm_.out_type = DType::kF32;
    gemm_.tile_m = gemm_.tile_n = 16;
    gemm_.sms = kBlocks;
    gemm_.b = b_.data();
    gemm_.rows = rows_;
    gemm_.me = pe;
    gemm_.node_size = kPes;
  }

  void all_gather_gemm() {
    const Range own = rows_.shard(pe_);
    const auto gathered = setup_.symmetric<float>(kPes * rows_.shard_rows() * kDepth, "gathered").as<std::byte>();
    const Signals ready = setup_.signals(rows_.slots(), "ready");
    std::vector<float> a(static_cast<std::size_t>(own.size() * kDepth)), c(kRows * kColumns);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = a_of(0, own.begin * kDepth + static_cast<Size>(i));
    gemm_.a = gathered.local();
    gemm_.own_a = a.data();
    gemm_.destination = GemmLocal{c.data()};
    gemm_.order = TileOrder::kOwnFirst;
    gemm_.gate = {ready.local(), epoch_, kBlocks};
    const ops::AllGatherPush::Args args{reinterpret_cast<const std::byte*>(a.data()),
                                        gathered,
                                        ready,
                                        epoch_,
                                        rows_,
                                        kDepth * Size{sizeof(float)},
                                        ops::ChunkOrder{setup_.team(), rows_.splits, -1, false},
                                        pe_ == 0};
    beside_gemm([&](cpu::Block& block) { ops::AllGatherPush::run(block, args); });
    check("all_gather_gemm", c, {0, kRows}, [this](Size row, Size column) { return product(0, pe_, row, column); });
  }

  void gemm_reduce_scatter() {
    const Range own = rows_.shard(pe_);
    std::vector<float> a(kRows * kDepth), out(static_cast<std::size_t>(own.size() * kColumns));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = a_of(pe_, static_cast<Size>(i));
    ops::ReduceShards<float>::Args args{};
    args.partials_at = ops::PartialsAt::kStaging;
    args.staging = setup_.symmetric<float>(kPes * rows_.shard_rows() * kColumns, "staging");
    args.out = out.data();
    args.arrived = setup_.signals(rows_.slots(), "arrived");
    args.expected = setup_.symmetric<Epoch>(kBlocks * rows_.splits, "expected").local();
    args.epoch = epoch_;
    args.rows = rows_;
    args.n = kColumns;
    args.tile_m = gemm_.tile_m;
    args.columns = ceil_div(kColumns, gemm_.tile_n);
    gemm_.a = a.data();
    gemm_.order = TileOrder::kPeersFirst;
    gemm_.destination = GemmScatter{args.staging.as<std::byte>(), args.arrived};
    beside_gemm([&](cpu::Block& block) { ops::ReduceShards<float>::run(block, args); });
    check("gemm_reduce_scatter", out, own, [](Size row, Size column) {
      float all = 0;
      for (int pe = 0; pe < kPes; ++pe) all += product(pe, pe, row, column);
      return all;
    });
  }

 private:
  static float a_of(int pe, Size i) { return static_cast<float>((i * 3 + pe) % 5); }
  static float b_of(int pe, Size i) { return static_cast<float>((i + 2 * pe) % 7); }
  /// Returns an element of the product of PE `a`'s A and PE `b`'s B.
  static float product(int a, int b, Size row, Size column) {
    float sum = 0;
    for (Size i = 0; i < kDepth; ++i) sum += a_of(a, row * kDepth + i) * b_of(b, column * kDepth + i);
    return sum;
  }

  void beside_gemm(const std::function<void(cpu::Block&)>& kernel) {
    // Both are recorded, which must not change the order of anything.
    host::GridRecords of_kernel{100, std::vector<std::vector<cuda::Record>>(kBlocks)};
    host::GridRecords of_gemm = of_kernel;
    std::thread other([&] { pes_.run_grid(pe_, kBlocks, kernel, &of_kernel); });
    host::run_gemm(pes_.context(pe_), gemm_, kBlocks, {}, nullptr, &of_gemm);
    other.join();
  }
  void check(const char* name, const std::vector<float>& c, Range rows,
             const std::function<float(Size, Size)>& expected) const {
    Size wrong = 0;
    for (Size row = rows.begin; row < rows.end; ++row)
      for (Size column = 0; column < kColumns; ++column)
        wrong += c[static_cast<std::size_t>((row - rows.begin) * kColumns + column)] != expected(row, column);
    say_if_wrong(pes_, pe_, name, wrong);
  }

  Pes& pes_;
  int pe_;
  Setup setup_;
  RowPartition rows_;
  std::vector<float> b_;
  Epoch* epoch_ = nullptr;
  Gemm gemm_;
};

void check_operator(void (Layer::*run)()) {
  Pes pes;
  Pes::on_all([&](int pe) { (Layer(pes, pe).*run)(); });
}

}  // namespace

int main() {
  check_collectives();
  check_operator(&Layer::all_gather_gemm);
  check_operator(&Layer::gemm_reduce_scatter);
  std::puts("done");
  return 0;
}
