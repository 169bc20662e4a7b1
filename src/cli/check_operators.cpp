// Overlapped operators under `tandem check`.
#include <fmt/format.h>

#include "check/run_once.h"
#include "cli/check_cases.h"
#include "cli/operator_data.h"
#include "cli/run_operator.h"
#include "tandem/error.h"

namespace tandem::cli {
namespace {

constexpr int kCalls = 3;

class OperatorProgram final : public CheckProgram {
 public:
  OperatorProgram(Operator op, const OperatorOptions& options, int pes) : op_(op), options_(options) {
    for (int i = 0; i < kCalls; ++i)
      data_.emplace_back(op, Shape{options.m, options.n, options.k}, options.type, pes,
                         static_cast<std::uint64_t>(i) + 1);
  }

  void run(World& world) const override {
    auto& heap = world.heap();
    const Shape shape{options_.m, options_.n, options_.k};
    const OperatorShard shard = operator_shard(op_, shape, world.num_pes(), world.pe());
    const Size element = size_of(options_.type);
    auto* const a = heap.allocate_local<std::byte>(shard.a_elements() * element, "a");
    auto* const b = heap.allocate_local<std::byte>(shard.b_elements() * element, "b");
    auto* const c = heap.allocate_local<std::byte>(shard.c_elements() * element, "c");
    const Size a_bytes = shard.a_elements() * element;
    const Size b_bytes = shard.b_elements() * element;
    const Size c_bytes = shard.c_elements() * element;
    auto* const inputs = heap.allocate_local<std::byte>(kCalls * (a_bytes + b_bytes), "inputs");
    auto* const results = heap.allocate_local<std::byte>(kCalls * c_bytes, "results");
    auto* const nothing = heap.allocate_local<std::byte>(c_bytes, "nothing");
    const auto plan = make_operator(world, op_, options_);
    Stream stream = world.make_stream("main");
    std::vector<std::byte> host_a(static_cast<std::size_t>(a_bytes));
    std::vector<std::byte> host_b(static_cast<std::size_t>(b_bytes));
    std::vector<std::byte> host_c(static_cast<std::size_t>(c_bytes), std::byte{0xFF});
    world.copy_in(nothing, host_c.data(), c_bytes);
    for (int i = 0; i < kCalls; ++i) {
      data_[static_cast<std::size_t>(i)].fill(world.pe(), host_a.data(), host_b.data());
      world.copy_in(inputs + i * (a_bytes + b_bytes), host_a.data(), a_bytes);
      world.copy_in(inputs + i * (a_bytes + b_bytes) + a_bytes, host_b.data(), b_bytes);
    }
    // Calls follow each other in the stream, and so do what prepares their input and takes their output away.
    for (int i = 0; i < kCalls; ++i) {
      stream.copy_async(a, inputs + i * (a_bytes + b_bytes), a_bytes);
      stream.copy_async(b, inputs + i * (a_bytes + b_bytes) + a_bytes, b_bytes);
      stream.copy_async(c, nothing, c_bytes);
      plan->run(stream, a, b, c);
      stream.copy_async(results + i * c_bytes, c, c_bytes);
    }
    stream.synchronize();
    for (int i = 0; i < kCalls; ++i) {
      world.copy_out(host_c.data(), results + i * c_bytes, c_bytes);
      Check check;
      data_[static_cast<std::size_t>(i)].check(world.pe(), host_c.data(), check);
      if (!check.correct())
        throw checker::WrongResult(world.pe(), fmt::format("call {}: {} of {} elements of PE {} are wrong", i + 1,
                                                           check.wrong, check.checked, world.pe()));
    }
  }

 private:
  Operator op_;
  OperatorOptions options_;
  std::vector<OperatorData> data_;
};

struct OperatorVariant {
  std::string name;
  OperatorOptions options;
};

/// Every form, transport, direction and order, once.
std::vector<OperatorVariant> variants(Operator op) {
  std::vector<OperatorVariant> all;
  for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed}) {
    for (const CopyBy by : {CopyBy::kCopyEngine, CopyBy::kSm}) {
      for (const Direction direction : {Direction::kPush, Direction::kPull}) {
        OperatorOptions options;
        options.form = form;
        options.copy_by = by;
        options.direction = direction;
        options.splits = 2;
        options.communication_sms = by == CopyBy::kSm || op == Operator::kGemmReduceScatter ? 2 : -1;
        const std::string transport =
            fmt::format("{}_{}", by == CopyBy::kSm ? "sm" : "ce", direction == Direction::kPush ? "push" : "pull");
        all.push_back({fmt::format("{}_{}", name(form), transport), options});
        if (form != Form::kOverlapped) continue;
        for (const std::string& order : tile_orders(op)) {
          options.order = order;
          all.push_back({fmt::format("{}_{}_{}", name(form), transport, order), options});
        }
      }
    }
  }
  return all;
}

}  // namespace

void add_operator_cases(std::vector<CheckCase>& cases, int pes) {
  for (const Operator op : kOperators) {
    for (const OperatorVariant& variant : variants(op)) {
      for (const int pes_per_node : node_sizes(pes)) {
        for (const bool mesh : {false, true}) {
          // A full mesh differs where SMs serve all peers at once, and copy engines have a stream for each.
          if (mesh && (pes_per_node != 0 || pes < 3 || !variant.options.order.empty())) continue;
          CheckCase one;
          one.op = name(op);
          one.algorithm = variant.name;
          one.variant = mesh ? "mesh" : "";
          one.machine = mesh ? "mi300x8" : machine_for(pes);
          one.pes = pes;
          one.has_twin = !variant.options.order.empty();
          one.pes_per_node = pes_per_node;
          OperatorOptions options = variant.options;
          // Two panels of tiles for each piece but the last shard's, whose rows are fewer.
          options.m = 32 * pes - 5;
          // Two columns of tiles; gathered rows meet 1/pes of them.
          options.n = op == Operator::kAllGatherGemm ? 16 * pes : 32;
          options.k = 8 * pes;
          options.tile_m = 8;
          options.tile_n = 16;
          one.make = [op, options, pes] { return std::make_unique<OperatorProgram>(op, options, pes); };
          cases.push_back(std::move(one));
        }
      }
    }
  }
}

}  // namespace tandem::cli
