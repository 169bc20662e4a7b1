// Overlapped operators under `tandem check`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "check/run_once.h"
#include "tandem/error.h"
#include "tools/tandem/check/check_cases.h"
#include "tools/tandem/data/operator_data.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {
namespace {

/// Rows of one plan's calls: all, fewer, all, and twice so few that most PEs have none.
constexpr int kOperatorCalls = 5;
Size rows_of_call(Size most, int call) { return std::array{most, most / 2 + 3, most, Size{1}, Size{1}}[call]; }

class OperatorProgram final : public CheckProgram {
 public:
  OperatorProgram(Operator op, const OperatorOptions& options, int pes) : op_(op), options_(options), pes_(pes) {
    // Several B share one matrix.
    const Size n = options.ns.empty() ? options.n : options.ns.front();
    OperatorRun call{.op = op, .options = options};
    call.options.n = n;
    for (int i = 0; i < kOperatorCalls; ++i) {
      call.options.m = rows_of_call(options.m, i);
      data_.emplace_back(call, pes, static_cast<std::uint64_t>(i) + 1);
    }
  }

  void run(World& world) const override {
    const OperatorShard most = shard(options_.m, world.pe());
    Matrices at;
    at.a_bytes = most.a_elements() * size_of(options_.type);
    at.b_bytes = most.b_elements() * size_of(options_.type);
    at.c_bytes = most.c_elements() * size_of(options_.type);
    fill(world, at);
    const auto plan = make_operator(world, op_, options_);
    Stream stream = world.make_stream("main");
    // Calls follow each other in the stream, with the copies of their input and output between them.
    const std::vector<const void*> b(static_cast<std::size_t>(products()), at.b);
    std::vector<void*> c;
    c.reserve(b.size());
    for (int i = 0; i < products(); ++i) c.push_back(at.c + i * at.c_bytes);
    for (int i = 0; i < kOperatorCalls; ++i) {
      stream.copy_async(at.a, at.inputs + i * (at.a_bytes + at.b_bytes), at.a_bytes);
      stream.copy_async(at.b, at.inputs + i * (at.a_bytes + at.b_bytes) + at.a_bytes, at.b_bytes);
      stream.copy_async(at.c, at.nothing, products() * at.c_bytes);
      plan->run(stream, {rows_of_call(options_.m, i), at.a, b, c});
      stream.copy_async(at.results + i * products() * at.c_bytes, at.c, products() * at.c_bytes);
    }
    stream.synchronize();
    std::vector<std::byte> host(static_cast<std::size_t>(at.c_bytes));
    for (int i = 0; i < kOperatorCalls * products(); ++i) {
      world.copy_out(host.data(), at.results + i * at.c_bytes, at.c_bytes);
      check(world.pe(), i / products(), host.data());
    }
  }

 private:
  struct Matrices {
    Size a_bytes = 0, b_bytes = 0, c_bytes = 0;  // of the largest call
    std::byte *a = nullptr, *b = nullptr, *c = nullptr;
    std::byte *inputs = nullptr, *results = nullptr;  // of all calls
    std::byte* nothing = nullptr;                     // what C holds before a call
  };

  int products() const { return std::max(1, static_cast<int>(options_.ns.size())); }
  OperatorShard shard(Size m, int pe) const {
    return operator_shard(op_, {m, options_.n / products(), options_.k}, pes_, pe);
  }

  void fill(World& world, Matrices& at) const {
    const auto local = [&](Size bytes, const char* what) {
      return world.heap().allocate_local<std::byte>(bytes, what);
    };
    at.a = local(at.a_bytes, "a");
    at.b = local(at.b_bytes, "b");
    at.c = local(products() * at.c_bytes, "c");
    at.inputs = local(kOperatorCalls * (at.a_bytes + at.b_bytes), "inputs");
    at.results = local(kOperatorCalls * products() * at.c_bytes, "results");
    at.nothing = local(products() * at.c_bytes, "nothing");
    const std::vector<std::byte> nothing(static_cast<std::size_t>(products() * at.c_bytes), std::byte{0xFF});
    world.copy_in(at.nothing, nothing.data(), products() * at.c_bytes);
    std::vector<std::byte> a(static_cast<std::size_t>(at.a_bytes)), b(static_cast<std::size_t>(at.b_bytes));
    for (int i = 0; i < kOperatorCalls; ++i) {
      data_[static_cast<std::size_t>(i)].fill(world.pe(), a.data(), b.data());
      world.copy_in(at.inputs + i * (at.a_bytes + at.b_bytes), a.data(), at.a_bytes);
      world.copy_in(at.inputs + i * (at.a_bytes + at.b_bytes) + at.a_bytes, b.data(), at.b_bytes);
    }
  }

  void check(int pe, int call, const std::byte* c) const {
    Check check;
    data_[static_cast<std::size_t>(call)].check(pe, c, check);
    if (!check.correct())
      throw checker::WrongResult(
          pe, fmt::format("call {}: {} of {} elements of PE {} are wrong", call + 1, check.wrong, check.checked, pe));
  }

  Operator op_;
  OperatorOptions options_;
  int pes_;
  std::vector<OperatorData> data_;
};

struct OperatorVariant {
  std::string name;
  OperatorOptions options;
};

const char* short_name(CopyBy by) { return by == CopyBy::kSm ? "sm" : "ce"; }
const char* short_name(Direction direction) { return direction == Direction::kPush ? "push" : "pull"; }

/// Every form, transport, direction and order of an operator whose owners add the partial sums, once each.
void add_transports(std::vector<OperatorVariant>& all, Operator op, const std::string& prefix, OperatorOptions options,
                    std::span<const Form> forms) {
  for (const Form form : forms) {
    for (const CopyBy by : {CopyBy::kCopyEngine, CopyBy::kSm}) {
      for (const Direction direction : {Direction::kPush, Direction::kPull}) {
        options.form = form;
        options.copy_by = by;
        options.direction = direction;
        options.order = {};
        options.communication_sms = by == CopyBy::kSm || op != Operator::kAllGatherGemm ? 2 : -1;
        const std::string named = fmt::format("{}{}_{}_{}", name(form), prefix, short_name(by), short_name(direction));
        all.push_back({named, options});
        if (form != Form::kOverlapped) continue;
        for (const std::string& order : tile_orders(op)) {
          options.order = order;
          all.push_back({fmt::format("{}_{}", named, order), options});
        }
      }
    }
  }
}

void add_chains(std::vector<OperatorVariant>& all, Operator op, OperatorOptions options, int pes) {
  // The last part of the first shards is empty. The last shard has smaller parts, none of which is empty.
  options.m = 49 * pes - 3;
  options.splits = 3;
  options.form = Form::kOverlapped;
  options.reduction = Reduction::kChain;
  for (const CopyBy by : {CopyBy::kCopyEngine, CopyBy::kSm}) {
    options.copy_by = by;
    options.communication_sms = -1;
    all.push_back({fmt::format("overlapped_chain_{}", short_name(by)), options});
    if (op != Operator::kGemmAllReduce) continue;
    options.communication_sms = 2;  // these fetch beside the GEMM
    all.push_back({fmt::format("overlapped_chain_{}_beside", short_name(by)), options});
  }
}

std::vector<OperatorVariant> variants(Operator op, int pes) {
  constexpr std::array kForms{Form::kOverlapped, Form::kSequential, Form::kDecomposed};
  std::vector<OperatorVariant> all;
  OperatorOptions options;
  // The first shards have one row more than two panels of tiles for each of two chunks. They have fewer and larger
  // chunks than the last shard. There are two columns of tiles if all columns belong to a PE.
  options.m = 33 * pes - 3;
  options.n = op == Operator::kAllGatherGemm ? 16 * pes : 32;
  options.k = 8 * pes;
  options.tile_m = 8;
  options.tile_n = 16;
  options.splits = 2;
  options.use_tuned = false;
  options.reduction = Reduction::kOwner;
  options.shots = op == Operator::kGemmAllReduce ? 2 : 0;
  add_transports(all, op, "", options, kForms);
  if (op != Operator::kAllGatherGemm) add_chains(all, op, options, pes);
  if (op == Operator::kAllGatherGemm) {
    options.ns = {options.n, options.n};
    options.n *= 2;
    add_transports(all, op, "_two_b", options, std::span(kForms).first(1));
    std::erase_if(all, [](const OperatorVariant& v) { return !v.options.ns.empty() && !v.options.order.empty(); });
  }
  if (op == Operator::kGemmAllReduce) {
    // These options change the path: two shots after a whole GEMM, and by shards between nodes.
    options.activation = Activation::kGelu;
    options.form = Form::kSequential;
    all.push_back({"sequential_gelu", options});
    options.activation = Activation::kNone;
    options.shots = 1;
    for (const Form form : std::span(kForms).first(2)) {
      options.form = form;
      all.push_back({fmt::format("{}_packets", name(form)), options});
    }
    // This size is too large for packets.
    options.form = Form::kOverlapped;
    options.type = DType::kF32;
    options.n = 1024;
    options.m = 290;  // also for the call with fewer rows
    options.tile_m = options.tile_n = 128;
    all.push_back({"overlapped_one_shot", options});
  }
  return all;
}

/// Chains and one shot need PEs that reach each other.
bool one_node_only(Operator op, const OperatorOptions& options) {
  return options.reduction == Reduction::kChain || (op == Operator::kGemmAllReduce && options.shots == 1);
}

/// Returns whether kernels that wait for other PEs, between a chain's copies, have to run beside the GEMM.
bool waits_beside_gemm(const OperatorOptions& options) {
  return options.form == Form::kOverlapped && options.reduction == Reduction::kChain &&
         options.copy_by == CopyBy::kCopyEngine;
}

}  // namespace

void add_operator_cases(std::vector<CheckCase>& cases, int pes) {
  for (const Operator op : kOperators) {
    for (const OperatorVariant& variant : variants(op, pes)) {
      for (const int pes_per_node : node_sizes(pes)) {
        if (pes_per_node != 0 && one_node_only(op, variant.options)) continue;
        for (const bool mesh : {false, true}) {
          // A full mesh differs: SMs serve all peers at once, and copy engines have a stream for each peer.
          if (mesh && (pes_per_node != 0 || pes < 3 || !variant.options.order.empty())) continue;
          CheckCase one;
          one.op = name(op);
          one.algorithm = variant.name;
          one.variant = mesh ? "mesh" : "";
          one.machine = mesh ? "mi300x8" : machine_for(pes);
          one.pes = pes;
          one.has_twin = !variant.options.order.empty() || variant.options.activation != Activation::kNone;
          one.pes_per_node = pes_per_node;
          one.one_kernel_at_a_time = !waits_beside_gemm(variant.options);
          one.make = [op, options = variant.options, pes] {
            return std::make_unique<OperatorProgram>(op, options, pes);
          };
          cases.push_back(std::move(one));
        }
      }
    }
  }
}

}  // namespace tandem::cli
