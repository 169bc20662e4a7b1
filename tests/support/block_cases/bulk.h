#pragma once
/// Cases for bulk copies by roles, and by the block.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/block_cases/memory.h"
#include "support/collective_values.h"
#include "tandem/block.h"
#include "tandem/world.h"

namespace tandem::test {

/// Every actor copies bytes of all lengths and alignments to an area of the next PE, which copies the areas on. The
/// first `Rings` roles have shared memory for them.
template <int Rings>
struct BulkCopies {
  struct Args {
    const std::uint8_t* from;  // [kArea]
    Symm<std::uint8_t> to;     // [actor][kArea]
    std::uint8_t* last;        // [actor][kArea]
    Signals word;
    Epochs epochs;
  };
  static constexpr int kThreads = 128, kBulkRoles = Rings, kActors = 7;
  static constexpr Size kArea = Size{300} << 10;

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    const int next = (block.pe() + 1) % block.num_pes();
    block.template parallel<1, 2, 1>([&](auto& role) { copy_all(role, a, 0, next); },
                                     [&](auto& role) { copy_all(role, a, 1, next); },
                                     [&](auto& role) { copy_all(role, a, 2, next); });
    block.template parallel_for<1>(3, [&](auto& role, int i) { copy_all(role, a, 3 + i, next); });
    copy_all(block, a, 6, next);
    block.notify(a.word, epoch, next);
    block.wait(a.word, 1, epoch);
    block.copy_bulk(a.last, a.to.local(), kActors * kArea);
  }

  static Size wrong(World& world) {
    constexpr std::uint8_t kUntouched = 0xEE;
    const int previous = (world.pe() + world.num_pes() - 1) % world.num_pes();
    const std::vector<std::uint8_t> untouched(kActors * kArea, kUntouched);
    const Args args{device_copy(world, values(world.pe()), "from"),
                    world.heap().allocate<std::uint8_t>(kActors * kArea, "to"), device_copy(world, untouched, "last"),
                    world.heap().signals(1, "word"), world.heap().epochs(1, "epochs")};
    world.copy_in(args.to.local(), untouched.data(), kActors * kArea);
    world.barrier();
    Stream stream = world.make_stream("bulk");
    stream.launch<BulkCopies>({1, kThreads}, args);
    stream.synchronize();
    std::vector<std::uint8_t> right = untouched;
    const std::vector<std::uint8_t> from = values(previous);
    for (Size actor = 0; actor < kActors; ++actor)
      for (Part part = first_part(); part.number < kParts; part = next_part(part))
        std::copy_n(from.begin() + part.from, part.bytes, right.begin() + actor * kArea + part.to);
    const auto got = host_copy(world, args.last, kActors * kArea);
    Size wrong = 0;
    for (std::size_t i = 0; i < right.size(); ++i) wrong += got[i] == right[i] ? 0 : 1;
    world.barrier();
    return wrong;
  }

 private:
  static constexpr int kLengths = 8, kParts = 3 * kLengths;
  struct Part {
    int number;
    Size to, from, bytes;
  };
  /// Fewer bytes than an access, pieces of the engine, and more than fit its places several times.
  TANDEM_DEVICE static Size bytes_of(int number) {
    constexpr Size kBytes[kLengths] = {0, 5, 16, 4096, 4112, 12'295, 20'480, 36'921};
    return kBytes[number % kLengths];
  }
  TANDEM_DEVICE static Part first_part() { return {0, 0, 0, bytes_of(0)}; }
  /// The ends are at multiples of 16 bytes, then alike beside them, and then each in its own way.
  TANDEM_DEVICE static Part next_part(const Part& last) {
    const int number = last.number + 1, kind = number / kLengths;
    const Size begin = round_up(last.to + last.bytes + 16, 16);
    return {number, begin + kind, begin + (kind == 1 ? 1 : 0), bytes_of(number)};
  }
  template <class Role>
  TANDEM_DEVICE static void copy_all(Role& role, const Args& a, int actor, int next) {
    std::uint8_t* const area = a.to.on(next) + actor * kArea;
    for (Part part = first_part(); part.number < kParts; part = next_part(part))
      role.copy_bulk(area + part.to, a.from + part.from, part.bytes);
  }
  static std::vector<std::uint8_t> values(int pe) {
    std::vector<std::uint8_t> values(kArea);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(mix(17, 0, pe, i) % 200);
    return values;
  }
};

}  // namespace tandem::test
