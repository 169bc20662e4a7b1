#include "tools/tandem/tune/expert_tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/console.h"
#include "tools/tandem/options/json_file.h"
#include "tools/tandem/tune/sweep.h"
#include "tools/tandem/tune/tune.h"
#include "tools/tandem/tune/tune_place.h"
#include "tune/expert_cache.h"

namespace tandem::cli {
namespace {

/// A form to try. The first one of each algorithm leaves the numbers to the plan.
struct TriedForm {
  std::string algorithm;
  int blocks = 0;  // or SMs beside a GEMM
  int column_chunks = 0;
};

/// The times of one size.
struct OfSize {
  std::optional<tune::ExpertKey> key;  // in the process of PE 0
  std::vector<tune::ExpertTime> times;
};
using BySize = std::map<Size, OfSize>;

const LayerSubject* expert_call_of(const std::string& text) {
  constexpr const char* kCalls[] = {"dispatch", "combine", "dispatch_gemm", "gemm_combine"};
  if (std::find(std::begin(kCalls), std::end(kCalls), text) == std::end(kCalls)) return nullptr;
  for (const LayerSubject& one : layer_subjects())
    if (text == one.name) return &one;
  return nullptr;
}

bool has_products(const std::string& subject) { return subject == "dispatch_gemm" || subject == "gemm_combine"; }

/// The overlapped dispatch_gemm has no fp8.
std::vector<TriedForm> forms_of(const TuneOptions& a, const std::string& subject) {
  std::vector<TriedForm> forms;
  if (!has_products(subject)) {
    for (const ExpertTransport transport : {ExpertTransport::kPackets, ExpertTransport::kChunks})
      for (const int blocks : {0, 8, 32, 128, 256, 512}) forms.push_back({name(transport), blocks, 0});
    forms.push_back({name(ExpertTransport::kFused), 0, 0});  // its one kernel has blocks by its own rule
  } else {
    forms.push_back({name(ExpertForm::kSequential), 0, 0});
    const bool combines = subject == "gemm_combine";
    const bool is_fp8 = a.wire && *a.wire != name(ExpertWire::kType);
    for (const int sms : {8, 16, 32, 64})
      for (const int chunks : combines ? std::vector{2, 4, 8} : std::vector{0})
        if (combines || !is_fp8) forms.push_back({name(ExpertForm::kOverlapped), sms, chunks});
  }
  if (a.algorithm) {
    std::erase_if(forms, [&](const TriedForm& form) { return form.algorithm != *a.algorithm; });
    if (forms.empty())
      throw InvalidArgument(
          fmt::format("--algo: '{}' given, tune tries {} of {}", *a.algorithm,
                      has_products(subject) ? "sequential and overlapped" : "packets, chunks and fused", subject));
  }
  return forms;
}

LayerRun run_of(const TuneOptions& a, const std::string& subject, const TriedForm& form) {
  TuneOptions one = a;
  one.algorithm = form.algorithm;
  if (has_products(subject)) {
    if (form.blocks > 0) one.communication_sms = form.blocks;
    if (form.column_chunks > 0) one.column_chunks = form.column_chunks;
  } else {
    one.blocks = form.blocks;
  }
  return tuned_layer_run(one, subject, *expert_call_of(subject));
}

/// Adds the times of a form. Numbers that this machine does not have are left out, where others were tried before.
void measure(const TuneOptions& a, const std::string& subject, const TriedForm& form, const TunePlace& place,
             BySize& by_size) {
  if (!has_products(subject) && form.blocks > place.most_blocks()) return;
  LayerRun run = run_of(a, subject, form);
  const bool is_first = by_size.empty();
  for (const Size size : layer_sizes(a)) {
    OfSize& of_size = by_size[size];
    run.on_world = [&](const World& world) { of_size.key = tune::expert_key(world, subject, run.experts(size)); };
    try {
      place.run(run, {size}, [&](Size, const Result& result) {
        of_size.times.push_back({form.algorithm, form.blocks, form.column_chunks, result.time_us});
      });
    } catch (const Unsupported&) {  // a grid that does not fit
      if (is_first) throw;
    } catch (const InvalidArgument&) {  // more blocks, SMs or chunks than there are, or what cannot be fused
      if (is_first) throw;
    } catch (const Deadlock&) {  // more blocks than are resident
      if (is_first) throw;
    }
  }
}

std::string describe(const std::string& subject, const tune::ExpertTime& time) {
  std::string text = time.algorithm;
  if (time.blocks > 0) text += fmt::format("/{}", time.blocks);
  if (time.column_chunks > 0) text += fmt::format("/{} chunks", time.column_chunks);
  return fmt::format("{}{} {:.2f}", text, has_products(subject) && time.blocks > 0 ? " (SMs)" : "", time.us);
}

void print_size(const TuneOptions& a, const std::string& subject, Size tokens, const OfSize& of_size) {
  constexpr std::size_t kShown = 4;
  if (a.json_to_stdout()) return;
  std::vector<std::string> texts;
  texts.reserve(kShown);
  for (std::size_t i = 0; i < std::min(kShown, of_size.times.size()); ++i)
    texts.push_back(describe(subject, of_size.times[i]));
  fmt::print("{:<15}{:>7} tokens  {}  ({} tried, {})\n", subject, tokens, fmt::join(texts, ", "), of_size.times.size(),
             a.in_real_time() ? "measured" : "predicted");
  flush_output();
}

nlohmann::ordered_json to_json(const TuneOptions& a, const OfSize& of_size, Size tokens) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const tune::ExpertTime& time : of_size.times)
    rows.push_back({{"op", of_size.key->op},
                    {"tokens", tokens},
                    {"pes", of_size.key->pes},
                    {"algorithm", time.algorithm},
                    {"blocks", time.blocks},
                    {"column_chunks", time.column_chunks},
                    {"predicted", !a.in_real_time()},
                    {"tandem_us", time.us}});
  return rows;
}

}  // namespace

bool names_expert_calls(const TuneOptions& a) {
  const auto calls = static_cast<std::size_t>(std::count_if(
      a.subjects.begin(), a.subjects.end(), [](const auto& one) { return expert_call_of(one) != nullptr; }));
  if (calls == 0) return false;
  if (calls != a.subjects.size())
    throw InvalidArgument("OP: calls of experts and others given, allowed are either in one run");
  if (a.tokens) throw InvalidArgument("--tokens: does not apply to tune, whose sizes are -b to -e");
  if (a.column_chunks) throw InvalidArgument("--column-chunks: does not apply to tune, which tries several");
  return true;
}

int tune_expert_calls(const TuneOptions& a) {
  check_json_file(a);
  check_output("--out", a.out);
  check_output_kind(a.out, TuneOutput::kOperatorCache);
  const TunePlace place(a);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::string& subject : a.subjects) {
    BySize by_size;
    for (const TriedForm& form : forms_of(a, subject)) measure(a, subject, form, place, by_size);
    for (auto& [tokens, of_size] : by_size) {
      if (!of_size.key) return kRight;  // The process of PE 0 writes.
      std::stable_sort(of_size.times.begin(), of_size.times.end(),
                       [](const auto& one, const auto& other) { return one.us < other.us; });
      print_size(a, subject, tokens, of_size);
      tune::store_expert_times(a.out, *of_size.key, of_size.times);
      for (auto& row : to_json(a, of_size, tokens)) rows.push_back(row);
    }
  }
  write_json(a, rows);
  if (!a.json_to_stdout()) fmt::print("wrote {}; {}={} lets plans take it\n", a.out, kOperatorCacheVariable, a.out);
  return kRight;
}

}  // namespace tandem::cli
