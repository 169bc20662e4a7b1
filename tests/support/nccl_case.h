#pragma once
/// One call through NCCL's interface, its input, and the result that each rank must have.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/nccl_library.h"

namespace tandem::check {

enum class Kind { AllReduce, Reduce, ReduceScatter, AllGather, AlltoAll, Broadcast, Bcast, Gather, Scatter, Ring };
inline constexpr Kind kKinds[] = {Kind::AllReduce, Kind::Reduce, Kind::ReduceScatter, Kind::AllGather, Kind::AlltoAll,
                                  Kind::Broadcast, Kind::Bcast,  Kind::Gather,        Kind::Scatter,   Kind::Ring};
inline constexpr const char* kKindNames[] = {"all_reduce", "reduce", "reduce_scatter", "all_gather", "all_to_all",
                                             "broadcast",  "bcast",  "gather",         "scatter",    "send_recv"};

inline std::size_t bytes_of(ncclDataType_t type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kBytes[type];
}

/// The bits of a float of few bits that holds `value` exactly.
inline std::uint16_t small_float(double value, int exponent_bits, int mantissa_bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const int biased = exponent - 1 + (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<unsigned>((fraction * 2 - 1) * (1 << mantissa_bits));
  return static_cast<std::uint16_t>((static_cast<unsigned>(biased) << mantissa_bits) | mantissa);
}

/// Writes a positive `value` as an element.
inline void encode(double value, ncclDataType_t type, char* to) {
  const auto put = [to](auto element) { std::memcpy(to, &element, sizeof(element)); };
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return put(static_cast<std::uint8_t>(value));
    case ncclInt32:
    case ncclUint32:
      return put(static_cast<std::uint32_t>(value));
    case ncclInt64:
    case ncclUint64:
      return put(static_cast<std::uint64_t>(value));
    case ncclFloat32:
      return put(static_cast<float>(value));
    case ncclFloat64:
      return put(value);
    case ncclFloat16:
      return put(small_float(value, 5, 10));
    case ncclBfloat16:
      return put(small_float(value, 8, 7));
    case ncclFloat8e4m3:
      return put(static_cast<std::uint8_t>(small_float(value, 4, 3)));
    default:
      return put(static_cast<std::uint8_t>(small_float(value, 5, 2)));
  }
}

struct Case {
  Kind kind = Kind::AllReduce;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  std::size_t count = 1;
  bool in_place = false;
  int root = 0;
  double factor = 1;     ///< of an operation that multiplies before it sums
  std::size_t skip = 0;  ///< elements between the buffers' begin and the data

  bool is_rooted() const { return kind == Kind::Reduce || kind == Kind::Gather || kind == Kind::Scatter; }
  bool reduces() const { return kind == Kind::AllReduce || kind == Kind::Reduce || kind == Kind::ReduceScatter; }
  std::string name() const {
    return std::string(kKindNames[static_cast<int>(kind)]) + " type " + std::to_string(type) + " op " +
           std::to_string(op) + " count " + std::to_string(count) + (in_place ? " in place" : "") + " root " +
           std::to_string(root) + " skip " + std::to_string(skip);
  }
  std::size_t inputs(int rank, int ranks) const {
    if (kind == Kind::Scatter && rank != root) return 0;
    const bool all = kind == Kind::ReduceScatter || kind == Kind::AlltoAll || kind == Kind::Scatter;
    return all ? count * static_cast<std::size_t>(ranks) : count;
  }
  std::size_t outputs(int rank, int ranks) const {
    if ((kind == Kind::Reduce || kind == Kind::Gather) && rank != root) return 0;
    const bool all = kind == Kind::AllGather || kind == Kind::AlltoAll || kind == Kind::Gather;
    return all ? count * static_cast<std::size_t>(ranks) : count;
  }
  /// Whether the type holds each partial result, so that their order does not matter.
  bool is_exact(int ranks) const {
    if (ranks <= 2 || !reduces()) return true;
    if (op == ncclAvg) return false;
    return ranks == 3 ? type != ncclFloat8e5m2 : bytes_of(type) >= 4;
  }
  /// Element `i` of a rank's input in turn `turn`.
  double value(int rank, std::size_t i, int turn) const {
    const std::size_t mixed = i * 7 + static_cast<std::size_t>(rank * 3 + turn);
    return static_cast<double>(mixed % (type >= ncclFloat8e4m3 ? 2 : 5) + 1);
  }
  double reduced(std::size_t i, int ranks, int turn) const {
    double all = value(0, i, turn) * factor;
    for (int rank = 1; rank < ranks; ++rank) {
      const double next = value(rank, i, turn) * factor;
      all = op == ncclProd  ? all * next
            : op == ncclMax ? std::fmax(all, next)
            : op == ncclMin ? std::fmin(all, next)
                            : all + next;
    }
    return op == ncclAvg ? all / ranks : all;
  }
  /// Element `i` of the result.
  double expected(int rank, int ranks, std::size_t i, int turn) const {
    const std::size_t mine = static_cast<std::size_t>(rank) * count;
    switch (kind) {
      case Kind::AllReduce:
      case Kind::Reduce:
        return reduced(i, ranks, turn);
      case Kind::ReduceScatter:
        return reduced(mine + i, ranks, turn);
      case Kind::AllGather:
      case Kind::Gather:
        return value(static_cast<int>(i / count), i % count, turn);
      case Kind::AlltoAll:
        return value(static_cast<int>(i / count), mine + i % count, turn);
      case Kind::Scatter:
        return value(root, mine + i, turn);
      case Kind::Ring:
        return value((rank + ranks - 1) % ranks, i, turn);
      default:
        return value(root, i, turn);
    }
  }
};

/// Encodes `element(0)` to `element(n - 1)`, which repeat after ten.
template <typename Element>
void encode_repeated(std::size_t n, ncclDataType_t type, char* to, const Element& element) {
  constexpr std::size_t kPeriod = 10;
  const std::size_t bytes = bytes_of(type);
  for (std::size_t i = 0; i < std::min(n, kPeriod); ++i) encode(element(i), type, to + i * bytes);
  for (std::size_t done = kPeriod; done < n; done *= 2) {
    std::memcpy(to + done * bytes, to, std::min(done, n - done) * bytes);
  }
}

/// Writes a rank's input.
inline void encode_input(const Case& c, int rank, int ranks, int turn, char* to) {
  encode_repeated(c.inputs(rank, ranks), c.type, to, [&](std::size_t i) { return c.value(rank, i, turn); });
}

/// Writes the result that a rank must have.
inline void encode_result(const Case& c, int rank, int ranks, int turn, char* to) {
  for (std::size_t begin = 0; begin < c.outputs(rank, ranks); begin += c.count) {  // a part for each rank
    encode_repeated(c.count, c.type, to + begin * bytes_of(c.type),
                    [&](std::size_t i) { return c.expected(rank, ranks, begin + i, turn); });
  }
}

/// Issues the call of one rank; a pointer that NCCL does not read is null.
inline void issue(const NcclLibrary& nccl, const Case& c, const Member& rank, int ranks, char* in, char* out) {
  const bool is_root = rank.number == c.root;
  switch (c.kind) {
    case Kind::AllReduce:
      return TANDEM_NCCL(nccl, AllReduce, in, out, c.count, c.type, c.op, rank.comm, rank.stream);
    case Kind::Reduce:
      return TANDEM_NCCL(nccl, Reduce, in, is_root ? out : nullptr, c.count, c.type, c.op, c.root, rank.comm,
                         rank.stream);
    case Kind::ReduceScatter:
      return TANDEM_NCCL(nccl, ReduceScatter, in, out, c.count, c.type, c.op, rank.comm, rank.stream);
    case Kind::AllGather:
      return TANDEM_NCCL(nccl, AllGather, in, out, c.count, c.type, rank.comm, rank.stream);
    case Kind::AlltoAll:
      return TANDEM_NCCL(nccl, AlltoAll, in, out, c.count, c.type, rank.comm, rank.stream);
    case Kind::Broadcast:
      return TANDEM_NCCL(nccl, Broadcast, is_root ? in : nullptr, out, c.count, c.type, c.root, rank.comm, rank.stream);
    case Kind::Bcast:
      return TANDEM_NCCL(nccl, Bcast, out, c.count, c.type, c.root, rank.comm, rank.stream);
    case Kind::Gather:
      return TANDEM_NCCL(nccl, Gather, in, is_root ? out : nullptr, c.count, c.type, c.root, rank.comm, rank.stream);
    case Kind::Scatter:
      return TANDEM_NCCL(nccl, Scatter, is_root ? in : nullptr, out, c.count, c.type, c.root, rank.comm, rank.stream);
    case Kind::Ring:
      TANDEM_NCCL(nccl, GroupStart);
      TANDEM_NCCL(nccl, Send, in, c.count, c.type, (rank.number + 1) % ranks, rank.comm, rank.stream);
      TANDEM_NCCL(nccl, Recv, out, c.count, c.type, (rank.number + ranks - 1) % ranks, rank.comm, rank.stream);
      return TANDEM_NCCL(nccl, GroupEnd);
  }
}

/// Where a rank's input and output begin, if they share a buffer that begins at `both`.
inline char* input_in_place(const Case& c, int rank, char* both) {
  const std::size_t part = c.count * bytes_of(c.type);
  const bool gathers = c.kind == Kind::AllGather || c.kind == Kind::Gather;
  return gathers ? both + static_cast<std::size_t>(rank) * part : both;
}
inline char* output_in_place(const Case& c, int rank, char* both) {
  const std::size_t part = c.count * bytes_of(c.type);
  const bool scatters = c.kind == Kind::ReduceScatter || c.kind == Kind::Scatter;
  return scatters ? both + static_cast<std::size_t>(rank) * part : both;
}

}  // namespace tandem::check
