// Every collective of the C API on CPUs, by threads and by processes: a covering array of types, operations, sizes,
// places and kinds of memory.
#include <cstring>

#include "c_api/host/pes.h"
#include "support/pairwise.h"
#include "tandem/numeric.h"

namespace tandem::c_test {
namespace {

enum Kind { kAllReduce, kReduce, kReduceScatter, kAllGather, kAllToAll, kBroadcast, kGather, kScatter, kMessages };
constexpr int kKinds = 9;
constexpr const char* kNames[] = {"all_reduce", "reduce", "reduce_scatter", "all_gather", "all_to_all",
                                  "broadcast",  "gather", "scatter",        "messages"};
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kI8,
                            DType::kU8,  DType::kI32, DType::kU32,  DType::kI64,  DType::kU64,  DType::kF64};
constexpr size_t kCounts[] = {0, 1, 37, (size_t{16} << 10) + 1};
constexpr size_t kMostBytes = 8 * kCounts[3] * 8;

struct Case {
  Kind kind;
  int type;  // in `kTypes`
  tandem_op op;
  size_t count;
  bool in_place;
  bool on_heap;
  int root;

  size_t bytes() const { return static_cast<size_t>(size_of(kTypes[type])); }
  tandem_dtype c_type() const { return static_cast<tandem_dtype>(type + 1); }
  bool reduces() const { return kind <= kReduceScatter; }
  bool has_parts_in() const { return kind == kReduceScatter || kind == kAllToAll || kind == kScatter; }
  bool has_parts_out() const { return kind == kAllGather || kind == kAllToAll || kind == kGather; }
  std::string name() const {
    return std::string(kNames[kind]) + " type " + std::to_string(type + 1) + " op " + std::to_string(op) + " count " +
           std::to_string(count) + (in_place ? " in place" : "") + (on_heap ? " on the heap" : "");
  }

  /// Elements that every type holds, as it does all partial results: one PE's differs from what changes nothing.
  float input(int pe, size_t i, int n) const {
    if (!reduces()) return static_cast<float>((static_cast<size_t>(pe) * 5 + i * 3 + i / 7) % 7 + 1);
    const bool is_mine = (i + static_cast<size_t>(pe)) % static_cast<size_t>(n) == 0;
    if (op == TANDEM_AVG) return is_mine ? static_cast<float>(n) * reduced(i, n) : 0;
    return is_mine ? static_cast<float>(i % 3 + 1) : op == TANDEM_PROD ? 1 : 0;
  }
  float reduced(size_t i, int n) const {
    if (op == TANDEM_AVG) return static_cast<float>(i % 2 + 1);
    return op == TANDEM_MIN && n > 1 ? 0 : static_cast<float>(i % 3 + 1);
  }
  float expected(int pe, size_t i, int n) const {
    const size_t own = static_cast<size_t>(pe) * count;
    if (reduces()) return reduced(kind == kReduceScatter ? own + i : i, n);
    if (kind == kAllToAll) return input(static_cast<int>(i / count), own + i % count, n);
    if (has_parts_out()) return input(static_cast<int>(i / count), i % count, n);
    if (kind == kMessages) return input((pe + n - 1) % n, i, n);
    return input(root, kind == kScatter ? own + i : i, n);
  }

  /// Where input and output begin in one buffer.
  size_t in_begin(int pe) const { return kind == kAllGather || kind == kGather ? static_cast<size_t>(pe) * count : 0; }
  size_t out_begin(int pe) const {
    return kind == kReduceScatter || kind == kScatter ? static_cast<size_t>(pe) * count : 0;
  }
};

std::vector<Case> cases(int pes) {
  enum Factor : size_t { kKind, kType, kOp, kCount, kInPlace, kOnHeap };
  const auto allowed = [](size_t i, int a, size_t j, int b) {
    if (i != kKind) return true;
    if (j == kInPlace) return b == 0 || (a != kAllToAll && a != kMessages);
    return j != kOp || a <= kReduceScatter || b == TANDEM_SUM;
  };
  std::vector<Case> cases;
  const test::Pairwise pairwise({kKinds, 12, 5, 4, 2, 2}, allowed);
  for (const auto& row : pairwise.rows())
    cases.push_back({static_cast<Kind>(row[kKind]), row[kType], static_cast<tandem_op>(row[kOp]), kCounts[row[kCount]],
                     row[kInPlace] == 1, row[kOnHeap] == 1, static_cast<int>(cases.size()) % pes});
  return cases;
}

tandem_status call(const Case& c, const Peer& p, void* in, void* out) {
  switch (c.kind) {
    case kAllReduce:
      return tandem_all_reduce(p.world, in, out, c.count, c.c_type(), c.op, nullptr);
    case kReduce:
      return tandem_reduce(p.world, in, out, c.count, c.c_type(), c.op, c.root, nullptr);
    case kReduceScatter:
      return tandem_reduce_scatter(p.world, in, out, c.count, c.c_type(), c.op, nullptr);
    case kAllGather:
      return tandem_all_gather(p.world, in, out, c.count, c.c_type(), nullptr);
    case kAllToAll:
      return tandem_all_to_all(p.world, in, out, c.count, c.c_type(), nullptr);
    case kBroadcast:
      return tandem_broadcast(p.world, in, out, c.count, c.c_type(), c.root, nullptr);
    case kGather:
      return tandem_gather(p.world, in, out, c.count, c.c_type(), c.root, nullptr);
    case kScatter:
      return tandem_scatter(p.world, in, out, c.count, c.c_type(), c.root, nullptr);
    case kMessages:
      break;
  }
  const tandem_message to{in, c.count, c.c_type(), (p.pe + 1) % p.n};
  const tandem_message from{out, c.count, c.c_type(), (p.pe + p.n - 1) % p.n};
  return tandem_send_recv(p.world, &to, 1, &from, 1, nullptr);
}

/// Writes `count` elements, where `element(i)` is element i.
template <class Element>
void write(const Case& c, char* to, size_t count, const Element& element) {
  dispatch(kTypes[c.type], [&]<class T>() {
    for (size_t i = 0; i < count; ++i) {
      const T value = convert<T>(element(i));
      std::memcpy(to + i * sizeof(T), &value, sizeof(T));
    }
  });
}

void run_cases(const Peer& p) {
  std::vector<char> own(2 * kMostBytes), wanted(kMostBytes);
  void* heap = nullptr;
  ASSERT_EQ(error_of(tandem_alloc(p.world, 2 * kMostBytes, &heap)), "");
  for (const Case& c : cases(p.n)) {
    const auto n = static_cast<size_t>(p.n);
    char* const begin = c.on_heap ? static_cast<char*>(heap) : own.data();
    char* const in = begin + (c.in_place ? c.in_begin(p.pe) * c.bytes() : 0);
    char* const out = c.in_place ? begin + c.out_begin(p.pe) * c.bytes() : begin + kMostBytes;
    write(c, in, c.count * (c.has_parts_in() ? n : 1), [&](size_t i) { return c.input(p.pe, i, p.n); });
    EXPECT_EQ(error_of(call(c, p, in, out)), "") << c.name();
    EXPECT_EQ(error_of(tandem_synchronize(p.world, nullptr)), "") << c.name();
    const size_t count = c.count * (c.has_parts_out() ? n : 1);
    write(c, wanted.data(), count, [&](size_t i) { return c.expected(p.pe, i, p.n); });
    const bool has_result = (c.kind != kReduce && c.kind != kGather) || p.pe == c.root;
    EXPECT_TRUE(!has_result || std::memcmp(out, wanted.data(), count * c.bytes()) == 0)
        << c.name() << " on PE " << p.pe << " of " << p.n;
    EXPECT_EQ(error_of(tandem_barrier(p.world)), "");
  }
  EXPECT_EQ(error_of(tandem_free(p.world, heap)), "");
}

class EveryCall : public ::testing::TestWithParam<int> {};

TEST_P(EveryCall, OfThreads) { run(GetParam(), run_cases); }
TEST_P(EveryCall, OfProcesses) { run_processes(GetParam(), run_cases); }

INSTANTIATE_TEST_SUITE_P(Pes, EveryCall, ::testing::Values(1, 2, 3, 5, 8));

}  // namespace
}  // namespace tandem::c_test
