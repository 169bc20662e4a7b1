#include "operators/gemm_all_reduce/plan.h"

namespace tandem::ops {

OneShot::OneShot(World& world, const Settings& settings, Size max_m)
    : team_(world.team()), activation_(settings.options.activation) {
  const Size bytes = max_m * settings.result_row_bytes();
  grid_ = grid_for(bytes, world.machine().gpu.sm_count, kSumThreads);
  SymmetricHeap& heap = world.heap();
  staging_ = heap.allocate<std::byte>(team_.size * bytes, "gemm_all_reduce staging");
  arrived_ = heap.signals(team_.size, "gemm_all_reduce arrived");
  released_ = heap.signals(1, "gemm_all_reduce released");
  expected_ = heap.allocate_local<Epoch>(grid_.blocks, "gemm_all_reduce expected");
  through_ = heap.allocate_local<Epoch>(1, "gemm_all_reduce through");
  finished_ = heap.allocate_local<Epoch>(1, "gemm_all_reduce finished");
}

void OneShot::run(Stream& main, Gemm gemm, void* c) {
  gemm.rows = {gemm.m, 1, 1, gemm.tile_m};
  gemm.order = TileOrder::kPeersFirst;
  if (gemm.out_type == DType::kF32) send_tiles<float>(main, gemm, c);
  if (gemm.out_type == DType::kF16) send_tiles<f16>(main, gemm, c);
  if (gemm.out_type == DType::kBF16) send_tiles<bf16>(main, gemm, c);
}

template <class T>
void OneShot::send_tiles(Stream& main, Gemm gemm, void* c) {
  gemm.destination = GemmBroadcast{staging_, arrived_};
  // No tile leaves before all PEs have released the last call's staging.
  gemm.gate = {released_.local(), finished_, team_.size};
  main.gemm(gemm, team_);
  typename SumOfAll<T>::Args args{};
  args.staging = staging_.as<T>();
  args.out = static_cast<T*>(c);
  args.count = gemm.m * gemm.n;
  args.tiles = gemm.tiles_of_chunk(0, 0);
  args.arrived = arrived_;
  args.released = released_;
  args.expected = expected_;
  args.through = through_;
  args.finished = finished_;
  args.activation = activation_;
  main.launch<SumOfAll<T>>(grid_, args);
}

}  // namespace tandem::ops
