#pragma once
/// Predicted times of the products of experts with the travel of their rows.

#include "operators/experts/dispatch_gemm.h"

namespace tandem::ops {

/// Predicted times of calls in which all experts are equally likely, in us.
class ExpertTimes {
 public:
  /// The options outlive it.
  ExpertTimes(const Machine& machine, const Team& team, const ExpertGemmOptions& options);

  int sms() const { return model_.gpu.sm_count; }
  /// Returns as many early experts as keep the GEMM busy while rows travel on `beside` SMs.
  EarlyExperts early_experts(int beside) const;
  /// The times of the overlapped forms with `beside` SMs for rows, or sums.
  double dispatch_gemm_us(int beside) const;
  double gemm_combine_us(int chunks, int beside) const;

 private:
  /// The costs of one row on one SM.
  struct RowCost {
    double of_row;
    double of_piece;
  };
  double product_us(Size n, Size k, int experts, int sms) const;
  double first_product_us(int experts, int sms) const;
  double second_product_us(int sms) const;
  double bytes_us(double share, int sms) const;
  double rows_us(const EarlyExperts& early, int sms) const;
  double sums_us(int chunks, int sms) const;
  double visits(int experts) const;
  static double row_us(const RowCost& cost, Size bytes);
  Size row_bytes() const { return o_.experts.hidden * size_of(o_.experts.type); }

  Machine model_;
  const ExpertGemmOptions& o_;
  int pes_;
  int parts_;  // of the experts, each on tp_size PEs
  int here_;   // experts of a PE
};

}  // namespace tandem::ops
