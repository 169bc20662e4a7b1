#include "operators/experts/tuned_forms.h"

#include <algorithm>
#include <optional>

#include "tune/expert_cache.h"

namespace tandem::ops {

namespace {

/// The forms of both operators with the least sum of measured times, and the choices that they share.
struct TunedForms {
  ExpertForm dispatch_gemm = ExpertForm::kSequential;
  ExpertForm gemm_combine = ExpertForm::kSequential;
  int communication_sms = -1;  // -1: no form is overlapped
  int column_chunks = 0;
  double us = 0;
};

/// The fastest measured form of a call, if the overlapped ones among them have so many SMs beside the GEMM.
const tune::ExpertTime* fastest_with(const std::vector<tune::ExpertTime>& times, int sms) {
  const tune::ExpertTime* best = nullptr;
  for (const tune::ExpertTime& time : times)
    if ((time.algorithm == name(ExpertForm::kSequential) || time.blocks == sms) &&
        (best == nullptr || time.us < best->us))
      best = &time;
  return best;
}

/// `first` and `second`: the times of both operators, of which one may have none.
TunedForms fastest_forms(const std::vector<tune::ExpertTime>& first, const std::vector<tune::ExpertTime>& second) {
  std::optional<TunedForms> best;
  std::vector<int> sms{-1};
  for (const auto* const times : {&first, &second})
    for (const tune::ExpertTime& time : *times)
      if (time.algorithm == name(ExpertForm::kOverlapped)) sms.push_back(time.blocks);
  for (const int some : sms) {
    TunedForms forms;
    const auto take = [&](const std::vector<tune::ExpertTime>& times, ExpertForm& form) {
      const tune::ExpertTime* const time = fastest_with(times, some);
      if (time == nullptr) return times.empty();
      forms.us += time->us;
      form = parse_expert_form(time->algorithm);
      if (form == ExpertForm::kOverlapped) forms.communication_sms = some;
      forms.column_chunks = std::max(forms.column_chunks, time->column_chunks);
      return true;
    };
    const bool is_whole = take(first, forms.dispatch_gemm) && take(second, forms.gemm_combine);
    if (is_whole && (!best || forms.us < best->us)) best = forms;
  }
  return best.value_or(TunedForms{});
}

/// Returns the times that `tandem tune` left for the operators whose forms are open.
tune::ExpertTimes times_of_open_forms(World& world, const ExpertGemmOptions& o) {
  if (o.communication_sms >= 0 || o.column_chunks > 0 || o.experts.transport != ExpertTransport::kRule) return {};
  std::vector<std::string> ops;
  if (o.dispatch_gemm == ExpertForm::kRule) ops.emplace_back("dispatch_gemm");
  if (o.gemm_combine == ExpertForm::kRule) ops.emplace_back("gemm_combine");
  return ops.empty() ? tune::ExpertTimes{} : tune::find_expert_times(world, ops, o);
}

}  // namespace

std::string take_tuned_forms(World& world, ExpertGemmOptions& o) {
  const tune::ExpertTimes found = times_of_open_forms(world, o);
  if (found.file.empty()) return "";
  const bool both = found.times.size() == 2;
  const bool is_first = o.dispatch_gemm == ExpertForm::kRule;
  const TunedForms forms = fastest_forms(is_first ? found.times.front() : std::vector<tune::ExpertTime>{},
                                         both || !is_first ? found.times.back() : std::vector<tune::ExpertTime>{});
  if (is_first) o.dispatch_gemm = forms.dispatch_gemm;
  if (both || !is_first) o.gemm_combine = forms.gemm_combine;
  o.communication_sms = forms.communication_sms;
  o.column_chunks = forms.column_chunks;
  return found.file;
}

}  // namespace tandem::ops
