#include "operators/experts/expert_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "operators/experts/expert_times.h"
#include "operators/experts/grouped_product.h"
#include "operators/experts/tuned_forms.h"

namespace tandem::ops {

namespace {

constexpr int kColumnChunks = 4;

/// Returns the predicted time of the forms that overlap, or of both where none does.
double overlapped_us(const ExpertTimes& times, const ExpertGemmOptions& o, int sms) {
  const bool first = o.dispatch_gemm == ExpertForm::kOverlapped;
  const bool second = o.gemm_combine == ExpertForm::kOverlapped;
  return (first || !second ? times.dispatch_gemm_us(sms) : 0) +
         (second || !first ? times.gemm_combine_us(o.column_chunks, sms) : 0);
}

/// Returns the SMs beside a GEMM, some sixteenths of all, with which the overlapped forms take the least time.
int suitable_sms(const ExpertTimes& times, const ExpertGemmOptions& o) {
  int best = 0;
  double least = 0;
  for (const int sixteenths : {1, 2, 3, 4, 6, 8}) {
    const int sms = std::max(1, times.sms() * sixteenths / 16 / 2 * 2);  // blocks of a GEMM come in pairs
    const double us = overlapped_us(times, o, sms);
    if (best > 0 && us >= least) continue;
    best = sms;
    least = us;
  }
  return std::min(best, std::max(1, times.sms() - 1));
}

}  // namespace

ExpertChoices choose_expert_forms(World& world, const ExpertGemmOptions& given) {
  const ExpertGemmOptions options = with_tile(given, world.num_pes());
  ExpertChoices chosen{options, {}, {}};
  ExpertGemmOptions& o = chosen.options;
  const ExpertTimes times(world.machine(), world.team(), options);
  const std::string file = take_tuned_forms(world, o);
  const auto note = [&](const char* option, std::string value, bool is_given, bool is_tuned, const char* rule) {
    const OptionSource source = is_given   ? OptionSource::kCaller
                                : is_tuned ? OptionSource::kCache
                                           : OptionSource::kRule;
    chosen.choices.push_back({option, std::move(value), source, is_given ? "" : is_tuned ? file : rule});
  };
  const bool tuned_sms = !file.empty() && o.communication_sms >= 0;
  const bool tuned_chunks = !file.empty() && o.column_chunks > 0;
  const Size columns = ceil_div(o.experts.hidden, tile_columns_to_tokens(o));
  if (o.column_chunks == 0) o.column_chunks = static_cast<int>(std::min<Size>(kColumnChunks, columns));
  if (o.communication_sms < 0) o.communication_sms = suitable_sms(times, o);
  chosen.early = times.early_experts(o.communication_sms);
  for (ExpertForm* const form : {&o.dispatch_gemm, &o.gemm_combine})
    if (*form == ExpertForm::kRule) *form = ExpertForm::kSequential;
  note("dispatch_gemm", name(o.dispatch_gemm), options.dispatch_gemm != ExpertForm::kRule, !file.empty(),
       "the overlapped form was slower for every shape in the simulator and on two GPUs");
  note("gemm_combine", name(o.gemm_combine), options.gemm_combine != ExpertForm::kRule, !file.empty(),
       "the overlapped form was slower for every shape on two GPUs");
  note("communication-sms", std::to_string(o.communication_sms), options.communication_sms >= 0, tuned_sms,
       "the fewest predicted microseconds among 1 to 8 sixteenths of the SMs");
  note("column-chunks", std::to_string(o.column_chunks), options.column_chunks > 0, tuned_chunks,
       "four, or the tiles in a row");
  note("tile", fmt::format("{}x{}", o.tile_m, o.tile_n), given.tile_m > 0, false,
       "64x128 for up to 48 rows of an expert on average, in fp8 32x128 for up to 24, else 128x256, in fp8 without "
       "gates 128x192");
  return chosen;
}

}  // namespace tandem::ops
