#include "sim/device/tile_sum.h"

#include <cstring>
#include <vector>

#include "gemm/contract/activation.h"
#include "sim/device/gemm_signals.h"

namespace tandem::sim {

Buffer TileSum::of(const GemmTile& tile, Buffer product) {
  begin_calls(tile);
  const auto owner = static_cast<int>(tile.cols.begin / kSkinnyColumns % team_.size);
  Buffer sum;
  if (!has_owners_) {
    send_to_peers(tile, product);
    sum = add_up(tile, product);
  } else if (owner != team_.me) {
    send(tile, product, owner);
    sum = receive(tile, owner);
  } else {
    sum = add_up(tile, product);
    send_to_peers(tile, sum);
  }
  end_calls(tile);
  return sum;
}

void TileSum::begin_calls(const GemmTile& tile) {
  for (int block = 0; block < blocks(); ++block) {
    const Epoch* const calls = sum_.calls + tile_of(tile, block);
    role_.report_access(AccessKind::kLoad, calls, sizeof(Epoch), Site::here());
    calls_[block] = *calls;
  }
}

void TileSum::end_calls(const GemmTile& tile) {
  for (int block = 0; block < blocks(); ++block) {
    Epoch* const calls = sum_.calls + tile_of(tile, block);
    role_.report_access(AccessKind::kStore, calls, sizeof(Epoch), Site::here());
    ++*calls;
  }
}

void TileSum::send_to_peers(const GemmTile& tile, const Buffer& part) {
  for (int step = 1; step < team_.size; ++step) send(tile, part, (team_.me + step) % team_.size);
}

void TileSum::send(const GemmTile& tile, const Buffer& part, int to) {
  for (int block = 0; block < blocks(); ++block) {
    const Range rows = rows_of(block);
    const Size bytes = rows.size() * row_bytes(tile);
    const Epoch call = calls_[block];
    std::byte* const target = sum_.exchange.on(to) + places_.place(call, team_.me, tile_of(tile, block));
    const Time begin = role_.engine().now();
    role_.report_access(AccessKind::kStore, target, bytes, Site::here());
    const Time arrival =
        role_.store_arrival(role_.move(role_.pe, role_.sim.memory.pe_of(target), bytes, Driver::kStores));
    role_.last_arrival = std::max(role_.last_arrival, arrival);
    if (part) {
      Buffer payload(bytes);
      std::memcpy(payload.data(), part.data() + rows.begin * row_bytes(tile), static_cast<std::size_t>(bytes));
      role_.sim.deliver(arrival, data_delivery(target, std::move(payload), role_.cause()));
    }
    role_.report({.kind = OperationKind::kStore, .target = target, .bytes = bytes, .begin = begin}, Site::here());
    Signal* const word = sum_.arrived.on(to) + places_.word(call, team_.me, tile_of(tile, block));
    send_gemm_signal(role_, {word, call + 1, SignalOp::kSet}, arrival, Site::here());
  }
}

Buffer TileSum::receive(const GemmTile& tile, int from) {
  Buffer part = role_.sim.phantom ? Buffer() : Buffer(gemm_.m * row_bytes(tile));
  for (int block = 0; block < blocks(); ++block) {
    const Range rows = rows_of(block);
    const Size bytes = rows.size() * row_bytes(tile);
    const Epoch call = calls_[block];
    const int number = tile_of(tile, block);
    await_gemm_signal(role_, sum_.arrived.local() + places_.word(call, from, number), call + 1, Site::here());
    const std::byte* const source = sum_.exchange.local() + places_.place(call, from, number);
    const Time begin = role_.engine().now();
    role_.report_access(AccessKind::kLoad, source, bytes, Site::here());
    role_.move(role_.pe, role_.pe, bytes, Driver::kLoads);
    role_.report({.kind = OperationKind::kLoad, .address = source, .bytes = bytes, .begin = begin}, Site::here());
    if (part) std::memcpy(part.data() + rows.begin * row_bytes(tile), source, static_cast<std::size_t>(bytes));
  }
  return part;
}

/// Adds PEs 0, 1, ... in f32 and rounds once.
Buffer TileSum::add_up(const GemmTile& tile, const Buffer& own) {
  const Size elements = gemm_.m * tile.cols.size();
  Buffer result = role_.sim.phantom ? Buffer() : Buffer(gemm_.m * row_bytes(tile));
  std::vector<float> sums(result ? static_cast<std::size_t>(elements) : 0);
  for (int pe = 0; pe < team_.size; ++pe) {
    const Buffer received = pe == team_.me ? Buffer() : receive(tile, pe);
    if (!result) continue;
    const std::byte* const part = pe == team_.me ? own.data() : received.data();
    dispatch(gemm_.out_type, [&]<class T>() {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += convert<float>(reinterpret_cast<const T*>(part)[i]);
    });
  }
  if (!result) return result;
  dispatch(gemm_.out_type, [&]<class T>() {
    for (std::size_t i = 0; i < sums.size(); ++i)
      reinterpret_cast<T*>(result.data())[i] = convert<T>(activate(gemm_.activation, sums[i]));
  });
  return result;
}

}  // namespace tandem::sim
