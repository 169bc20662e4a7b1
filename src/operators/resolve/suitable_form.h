#pragma once
/// One plan of two forms: runs of few rows go one after the other, others overlap.

#include "tandem/operators.h"

namespace tandem::ops {

class SuitableForm final : public OperatorPlan {
 public:
  /// `sequential` serves runs of up to `rows` rows, `overlapped` the others; null where there are none.
  SuitableForm(const OperatorOptions& options, Size rows, std::unique_ptr<OperatorPlan> sequential,
               std::unique_ptr<OperatorPlan> overlapped)
      : OperatorPlan(options), rows_(rows), sequential_(std::move(sequential)), overlapped_(std::move(overlapped)) {}

  std::string strategy(Size m) const override { return (m <= rows_ ? sequential_ : overlapped_)->strategy(m); }

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    (call.m <= rows_ ? sequential_ : overlapped_)->run(main, call);
  }

  Size rows_;
  std::unique_ptr<OperatorPlan> sequential_, overlapped_;
};

}  // namespace tandem::ops
