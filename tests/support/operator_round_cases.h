#pragma once
/// The cases of operators that are checked on real devices, in groups.

#include <numeric>
#include <vector>

#include "operators/operator_epilogue.h"
#include "support/operator_rounds.h"

namespace tandem::test {

inline constexpr Operator kAllOperators[] = {Operator::kAllGatherGemm, Operator::kGemmReduceScatter,
                                             Operator::kGemmAllReduce};

class OperatorRoundCases {
 public:
  /// `sharing`: PEs on the GPU that the most of them share.
  OperatorRoundCases(int pes, int sharing) : pes_(pes), few_columns_(sharing == 1 ? 8192 : 2560 / sharing / 8 * 8) {}

  /// At least so many columns or so much depth, of which each PE has equal parts with rows of 16 bytes.
  Size divisible(Size length) const { return round_up(length, Size{8} * pes_); }

  /// The dimension that is divided among PEs, n or k, is made `divisible`.
  OperatorCase make_case(Operator op, Size m, Size n, Size k, Form form) const {
    OperatorCase c;
    c.op = op;
    c.options.m = m;
    c.options.n = op == Operator::kAllGatherGemm ? divisible(n) : n;
    c.options.k = op == Operator::kAllGatherGemm ? k : divisible(k);
    c.options.form = form;
    c.options.use_tuned = false;
    return c;
  }

  /// Every form, mover, direction, reduction and number of pieces.
  std::vector<OperatorCase> forms() const {
    std::vector<OperatorCase> all;
    struct Shape {
      Size m, n, k;
    };
    int number = 0;
    for (const Operator op : kAllOperators)
      for (const Form form : {Form::kOverlapped, Form::kSequential, Form::kDecomposed})
        for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
          for (const Direction direction : {Direction::kPush, Direction::kPull})
            for (const Reduction reduction : {Reduction::kOwner, Reduction::kChain})
              for (const Shape shape : {Shape{1300, 1056, 288}, {300, 1056, 288}, {5, 64, 64}})
                for (const int splits : {1, 3, 8}) {
                  const bool chain = reduction == Reduction::kChain;
                  if (op == Operator::kGemmAllReduce &&
                      (form == Form::kDecomposed || !chain || copy_by == CopyBy::kSm || direction == Direction::kPull))
                    continue;
                  if (chain && op == Operator::kGemmReduceScatter && form != Form::kOverlapped) continue;
                  if (chain && (op == Operator::kAllGatherGemm || direction == Direction::kPull)) continue;
                  OperatorCase c = make_case(op, shape.m, shape.n, shape.k, form);
                  c.options.copy_by = copy_by;
                  c.options.direction = direction;
                  c.options.reduction = reduction;
                  c.options.splits = splits;
                  if (op == Operator::kGemmAllReduce && form == Form::kOverlapped) c.options.shots = 2;
                  const auto orders = tile_orders(op);
                  c.options.order = chain ? "" : orders[static_cast<std::size_t>(number) % orders.size()];
                  c.options.type = number % 5 == 1 ? DType::kF16 : DType::kBF16;
                  c.options.tile_n = number % 3 == 0 && c.options.type == DType::kBF16 ? 128 : 256;
                  ++number;
                  all.push_back(c);
                }
    return all;
  }

  /// Runs of one, of an odd number and of all rows by one plan; what the plan takes by itself among them.
  std::vector<OperatorCase> rows() const {
    std::vector<OperatorCase> all;
    for (const Operator op : kAllOperators)
      for (const Form form : {Form::kSuitable, Form::kOverlapped, Form::kSequential, Form::kDecomposed})
        for (const Size m : {1300, 999, 17})
          for (int i = 0; i < 4; ++i) {
            OperatorCase c = make_case(op, m, 1056, 288, form);
            if (op == Operator::kGemmAllReduce && form == Form::kDecomposed) continue;
            if (form != Form::kSuitable) {
              c.options.copy_by = i % 2 == 0 ? CopyBy::kCopyEngine : CopyBy::kSm;
              if (op == Operator::kGemmReduceScatter)
                c.options.reduction = i < 2 ? Reduction::kChain : Reduction::kOwner;
              if (op == Operator::kAllGatherGemm && i >= 2) c.options.direction = Direction::kPull;
              if (op == Operator::kGemmAllReduce && form == Form::kOverlapped) c.options.shots = 2;
              c.options.splits = 1 + i;
            }
            c.fewer_rows = true;
            all.push_back(c);
          }
    // The first shards' last part is empty, the last shard's is not: its parts are smaller.
    for (const Operator op : {Operator::kGemmReduceScatter, Operator::kGemmAllReduce})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        for (const int sms : {0, 4}) {
          OperatorCase c = make_case(op, 769 * pes_ - 3, 1056, 288, Form::kOverlapped);
          c.options.reduction = Reduction::kChain;
          c.options.copy_by = copy_by;
          c.options.communication_sms = sms;
          c.options.splits = 3;
          if (op == Operator::kGemmAllReduce) c.options.shots = 2;
          c.fewer_rows = true;
          all.push_back(c);
        }
    return all;
  }

  /// Several B for one gather.
  std::vector<OperatorCase> several() const {
    std::vector<OperatorCase> all;
    for (const Form form : {Form::kSuitable, Form::kOverlapped, Form::kSequential, Form::kDecomposed})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        for (const Direction direction : {Direction::kPush, Direction::kPull}) {
          OperatorCase c = make_case(Operator::kAllGatherGemm, 1300, 1056, 288, form);
          c.options.ns = {divisible(512), divisible(64), divisible(480)};
          c.options.n = std::accumulate(c.options.ns.begin(), c.options.ns.end(), Size{0});
          if (form != Form::kSuitable) c.options.copy_by = copy_by;
          c.options.direction = direction;
          c.options.splits = 3;
          c.fewer_rows = true;
          all.push_back(c);
        }
    return all;
  }

  /// gemm_all_reduce whose owners add up, and in the plan's own choice of shots.
  std::vector<OperatorCase> shots() const {
    std::vector<OperatorCase> all;
    for (const Form form : {Form::kOverlapped, Form::kDecomposed})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        for (const Direction direction : {Direction::kPush, Direction::kPull})
          for (const int sms : {0, 4})
            for (const int splits : {1, 4}) {
              OperatorCase c = make_case(Operator::kGemmAllReduce, 1300, 1056, 288, form);
              c.options.reduction = Reduction::kOwner;
              c.options.shots = 2;
              c.options.copy_by = copy_by;
              c.options.direction = direction;
              c.options.communication_sms = sms;
              c.options.splits = splits;
              c.options.order = splits == 1 ? "peers_first" : "";
              c.fewer_rows = sms == 4;
              all.push_back(c);
            }
    return all;
  }

  /// gemm_all_reduce of so few rows, and so many columns, that the GEMM adds up.
  std::vector<OperatorCase> few() const {
    std::vector<OperatorCase> all;
    const auto add = [&](Form form, Size m, Size n, Size of_pe = 256) {
      OperatorCase c = make_case(Operator::kGemmAllReduce, m, n, of_pe * pes_, form);
      c.fewer_rows = true;
      all.push_back(c);
    };
    for (const Form form : {Form::kSuitable, Form::kOverlapped})
      for (const Size m : {64, 48, 33, 17, 1})
        add(form, m, few_columns_ + (m == 17 ? 8 : 0), m > 32 ? 256 : 264);  // 264: the last step of the kernel is cut
    // For more rows blocks compute slices, and some slices end within a tile.
    add(Form::kSuitable, 256, few_columns_);
    add(Form::kSuitable, 65, few_columns_ - 40);
    add(Form::kOverlapped, 211, few_columns_ - 40);
    add(Form::kOverlapped, 128, few_columns_);
    return all;
  }

  /// Deep enough for the last tiles' depth to be shared; all_gather_gemm alone rounds but once.
  std::vector<OperatorCase> deep() const {
    std::vector<OperatorCase> all;
    for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
      for (const int tile_n : {256, 192, 128}) {
        OperatorCase c = make_case(Operator::kAllGatherGemm, 300, 1056, 4096, Form::kOverlapped);
        c.options.copy_by = copy_by;
        c.options.tile_n = tile_n;
        c.fewer_rows = true;
        all.push_back(c);
      }
    return all;
  }

  /// So many tiles that blocks compute several, of pieces that come in several waves.
  std::vector<OperatorCase> waves() const {
    std::vector<OperatorCase> all;
    for (const Operator op : kAllOperators)
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        for (const Reduction reduction : {Reduction::kOwner, Reduction::kChain})
          for (const int tile_n : {256, 192, 128}) {
            if (op == Operator::kAllGatherGemm && reduction == Reduction::kChain) continue;
            const bool gather = op == Operator::kAllGatherGemm;
            OperatorCase c =
                make_case(op, 4100, gather ? 2048 * pes_ : 2048, gather ? 256 : 128 * pes_, Form::kOverlapped);
            c.options.copy_by = copy_by;
            c.options.reduction = reduction;
            c.options.tile_n = tile_n;
            c.options.splits = tile_n == 192 ? 1 : 4;
            if (op == Operator::kGemmAllReduce) c.options.shots = 2;
            c.fewer_rows = true;
            all.push_back(c);
          }
    return all;
  }

  /// For runs whose bits are compared.
  std::vector<OperatorCase> bits() const {
    std::vector<OperatorCase> all;
    for (const Operator op : kAllOperators) {
      for (const Size m : {1300, 64})
        for (const Form form : {Form::kSuitable, Form::kSequential}) all.push_back(make_case(op, m, 1056, 2080, form));
      if (op == Operator::kGemmAllReduce)
        for (const Size m : {256, 64, 1}) all.push_back(make_case(op, m, few_columns_, 2080, Form::kSuitable));
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        for (const Reduction reduction : {Reduction::kOwner, Reduction::kChain}) {
          if (op == Operator::kAllGatherGemm && reduction == Reduction::kChain) continue;
          OperatorCase c = make_case(op, 1300, 1056, 2080, Form::kOverlapped);
          c.options.copy_by = copy_by;
          c.options.reduction = reduction;
          c.options.splits = 2;
          if (op == Operator::kGemmAllReduce) c.options.shots = 2;
          all.push_back(c);
          c.options.m = 300;
          c.options.k = Size{3072} * (op == Operator::kAllGatherGemm ? 1 : pes_);  // stream-K
          all.push_back(c);
        }
    }
    return all;
  }

  /// gemm_all_reduce whose GEMM adds up, with bias and activation.
  std::vector<EpilogueCase> few_epilogues() const {
    std::vector<EpilogueCase> all;
    for (const Size m : {100, 64, 17, 1})
      for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kSilu}) {
        EpilogueCase c;
        c.op = Operator::kGemmAllReduce;
        c.options = {.m = m, .n = few_columns_, .k = Size{256} * pes_, .activation = activation, .use_tuned = false};
        c.bias = m != 64;
        all.push_back(c);
      }
    return all;
  }

  /// Products of a layer by one plan. They have a bias, so they use the library's GEMM in every form. In some of them
  /// blocks compute parts of two tiles; in others many blocks share one tile. They run one after the other with the
  /// same workspace. With two rows most PEs have none.
  std::vector<EpilogueCase> layers() const {
    std::vector<EpilogueCase> all;
    for (const Size m : {1500, 2})
      for (const bool by_sm : {true, false})
        for (const Form form : {Form::kSuitable, Form::kSequential}) {
          if (form == Form::kSuitable && !by_sm) continue;  // it chooses
          EpilogueCase c;
          c.options = {.m = m, .n = 1536 * pes_, .k = 4096, .form = form, .use_tuned = false};
          c.options.ns = {1024 * pes_, 256 * pes_, 256 * pes_};
          if (form == Form::kSequential) c.options.copy_by = by_sm ? CopyBy::kSm : CopyBy::kCopyEngine;
          c.bias = true;
          all.push_back(c);
        }
    return all;
  }

 private:
  Size pes_;
  Size few_columns_;  // as many as fill a PE's SMs with tiles of few rows
};

}  // namespace tandem::test
