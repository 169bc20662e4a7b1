// Runs dispatch_gemm and gemm_combine with the layers of three models on the GPUs that it finds. Each form gives the
// bits of the sequential one in every call. It prints microseconds of a call for each, and "N passed, N failed". The
// exit code is 1 if anything failed.
//
//   expert_sizes_gpu_check [MODEL] [FORM] [TOKENS]
//
// MODEL: deepseek-v3, qwen3-30b, mixtral, all (default). FORM: sequential, overlapped, both (default). TOKENS of a PE:
// default 4096.
//
// A wait that lasts for 4 s ends the call, and its error names the wait. A call that stands without a wait is named
// after 10 s, with the step in which each PE is, and the exit code is 3.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/counted_check.h"
#include "tandem/layer/expert_gemms.h"

namespace tandem::test {

namespace {

constexpr double kWaitSeconds = 4, kStepSeconds = 10;

struct Model {
  const char* name;
  Size hidden, intermediate;
  int experts, top_k;
};
constexpr Model kModels[] = {
    {"deepseek-v3", 7168, 2048, 256, 8}, {"qwen3-30b", 2048, 768, 128, 8}, {"mixtral", 4096, 14336, 8, 2}};

/// The step in which each PE is, for the case that it does not end.
class Steps {
 public:
  explicit Steps(int pes) : steps_(static_cast<std::size_t>(pes)), watcher_([this] { watch(); }) {}
  ~Steps() {
    is_over_ = true;
    watcher_.join();
  }
  void begin(int pe, const std::string& step) {
    const std::lock_guard lock(mutex_);
    steps_[static_cast<std::size_t>(pe)] = {step, Clock::now()};
  }
  void end(int pe) { begin(pe, ""); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Step {
    std::string name;
    Clock::time_point began;
  };

  void watch() {
    while (!is_over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const std::lock_guard lock(mutex_);
      const bool stands = std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
        return !step.name.empty() && Clock::now() - step.began > std::chrono::duration<double>(kStepSeconds);
      });
      if (!stands) continue;
      for (std::size_t pe = 0; pe < steps_.size(); ++pe)
        std::printf("STANDS PE %zu: %s\n", pe, steps_[pe].name.empty() ? "no step" : steps_[pe].name.c_str());
      std::printf("no wait of the library lasted for %g s: a kernel stands in barriers of its SMs, or computes\n",
                  kWaitSeconds);
      std::fflush(stdout);
      std::_Exit(3);
    }
  }

  std::mutex mutex_;
  std::vector<Step> steps_;
  std::atomic<bool> is_over_{false};
  std::thread watcher_;
};

/// The layer of a model on this PE.
class Layer {
 public:
  Layer(World& world, Stream& stream, Steps& steps, const Model& model, Size tokens, bool fp8)
      : world_(world), stream_(stream), steps_(steps), model_(model), tokens_(tokens), fp8_(fp8) {
    SymmetricHeap& heap = world.heap();
    const Size here = model.experts / world.num_pes(), element = fp8 ? 1 : 2;
    ExpertGemmOptions o = options(ExpertForm::kSequential);
    const ExpertSizes sizes = expert_gemm_sizes(o, world.num_pes());
    rows_ = sizes.rows;
    first_.tokens = second_.tokens = route_.tokens = tokens;
    route_.routing = heap.allocate_local<Index>(sizes.routing_bytes / 4, "routing");
    first_.routing = second_.routing = route_.routing;
    route_.ids = ids();
    route_.weights = numbers<float>(tokens * model.top_k, "weights", [](Size i) { return 0.1F + 0.01F * (i % 5); });
    first_.x = numbers<bf16>(tokens * model.hidden, "x", [](Size i) { return 0.25F * (i * 7 % 9 - 4); });
    first_.b = weights(here * 2 * model.intermediate * model.hidden * element, "first weights");
    second_.b = weights(here * model.hidden * model.intermediate * element, "second weights");
    first_.rows = heap.allocate_local<std::byte>(rows_ * model.hidden * element, "rows");
    first_.out = heap.allocate_local<std::byte>(rows_ * model.intermediate * element, "intermediate");
    second_.a = first_.out;
    second_.y = heap.allocate_local<std::byte>(rows_ * model.hidden * 2, "y");
    second_.out = heap.allocate_local<std::byte>(tokens * model.hidden * 2, "out");
    if (!fp8) return;
    const auto one = [](Size) { return 1.0F / 64; };
    const Size hidden = blocks(model.hidden), intermediate = blocks(model.intermediate);
    first_.b_scales = numbers<float>(here * 2 * intermediate * hidden, "first scales", one);
    second_.b_scales = numbers<float>(here * hidden * intermediate, "second scales", one);
    first_.row_scales = heap.allocate_local<float>(rows_ * hidden, "row scales");
    first_.out_scales = heap.allocate_local<float>(rows_ * intermediate, "intermediate scales");
    second_.a_scales = first_.out_scales;
  }

  /// Returns the microseconds of both operators in this form, and adds to `problem`.
  void run(ExpertForm form, std::string& problem) {
    const auto plan = make_expert_gemms(world_, options(form));
    step("route", form, [&] { plan->route(stream_, route_); });
    step("dispatch_gemm", form, [&] { plan->dispatch_gemm(stream_, first_); });
    step("gemm_combine", form, [&] { plan->gemm_combine(stream_, second_); });
    compare(form, problem);
    const double first = us("dispatch_gemm", form, [&] { plan->dispatch_gemm(stream_, first_); });
    const double second = us("gemm_combine", form, [&] { plan->gemm_combine(stream_, second_); });
    compare(form, problem);
    if (world_.pe() == 0)
      std::printf("%-12s %5lld tokens %-5s %-10s  dispatch_gemm %9.1f us (%s)  gemm_combine %9.1f us\n", model_.name,
                  static_cast<long long>(tokens_), fp8_ ? "fp8" : "bf16", name(form), first,
                  name(plan->options().dispatch_gemm), second);
    std::fflush(stdout);
  }

 private:
  static Size blocks(Size columns) { return ceil_div(columns, 128); }

  ExpertGemmOptions options(ExpertForm form) const {
    ExpertGemmOptions o;
    o.experts = {.max_tokens = tokens_, .hidden = model_.hidden, .experts = model_.experts, .top_k = model_.top_k};
    o.intermediate = model_.intermediate;
    o.activation = Activation::kSwiGlu;
    o.dispatch_gemm = fp8_ ? ExpertForm::kSequential : form;
    o.gemm_combine = form;
    if (fp8_) o.experts.wire = ExpertWire::kQuantised;
    return o;
  }

  /// Different experts for each token, which are all about equally likely.
  const void* ids() {
    std::vector<std::int32_t> ids;
    for (Size token = 0; token < tokens_; ++token) {
      const auto at = static_cast<Size>(mix(3, 5, world_.pe(), token) % static_cast<std::uint64_t>(model_.experts));
      const Size step = 1 + 2 * (token % (model_.experts / 2));
      for (int k = 0; k < model_.top_k; ++k) ids.push_back(static_cast<std::int32_t>((at + k * step) % model_.experts));
    }
    auto* const memory = world_.heap().allocate_local<Index>(static_cast<Size>(ids.size()), "ids");
    world_.copy_in(memory, ids.data(), static_cast<Size>(ids.size()) * 4);
    return memory;
  }

  template <class T, class Value>
  T* numbers(Size count, const char* what, const Value& value_of) {
    std::vector<T> values;
    values.reserve(static_cast<std::size_t>(count));
    for (Size i = 0; i < count; ++i) values.push_back(convert<T>(static_cast<float>(value_of(i))));
    auto* const memory = world_.heap().allocate_local<T>(count, what);
    world_.copy_in(memory, values.data(), count * Size{sizeof(T)});
    return memory;
  }

  /// Some numbers, again and again: the host would take long for all of them.
  const void* weights(Size bytes, const char* what) {
    constexpr Size kCount = Size{1} << 20;
    auto* const memory = world_.heap().allocate_local<std::byte>(bytes, what);
    const auto value_of = [](Size i) { return 0.01F * (static_cast<float>(mix(1, 2, 3, i) % 201) - 100) / 4; };
    const std::byte* const some =
        fp8_ ? reinterpret_cast<const std::byte*>(numbers<fp8_e4m3>(2 * kCount, "some", value_of))
             : reinterpret_cast<const std::byte*>(numbers<bf16>(kCount, "some", value_of));
    for (Size at = 0; at < bytes; at += 2 * kCount)
      stream_.copy_async(memory + at, some, std::min(2 * kCount, bytes - at));
    stream_.synchronize();
    return memory;
  }

  template <class Enqueue>
  void step(const std::string& what, ExpertForm form, const Enqueue& enqueue) {
    steps_.begin(world_.pe(), fmt::format("{} {} {} {}", model_.name, fp8_ ? "fp8" : "bf16", name(form), what));
    enqueue();
    stream_.synchronize();
    steps_.end(world_.pe());
  }

  template <class Enqueue>
  double us(const std::string& what, ExpertForm form, const Enqueue& enqueue) {
    constexpr int kRounds = 7, kCalls = 4;
    std::vector<double> all;
    for (int round = 0; round < kRounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      step("calls of " + what, form, [&] {
        for (int call = 0; call < kCalls; ++call) enqueue();
      });
      all.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
                    kCalls);
    }
    std::nth_element(all.begin(), all.begin() + kRounds / 2, all.end());
    return all[kRounds / 2];
  }

  /// The first result is the one that the others are compared with.
  void compare(ExpertForm form, std::string& problem) {
    std::vector<std::uint16_t> out(static_cast<std::size_t>(tokens_ * model_.hidden));
    world_.copy_out(out.data(), static_cast<const std::byte*>(second_.out), tokens_ * model_.hidden * 2);
    if (first_result_.empty()) {
      first_result_ = out;
      const auto zeros = std::count_if(out.begin(), out.end(), [](std::uint16_t v) { return (v & 0x7FFF) == 0; });
      if (zeros > static_cast<std::ptrdiff_t>(out.size() / 2) && problem.empty())
        problem = fmt::format("PE {}, {}: {} of {} elements are zeros", world_.pe(), name(form), zeros, out.size());
      return;
    }
    const auto wrong = std::mismatch(out.begin(), out.end(), first_result_.begin());
    if (wrong.first != out.end() && problem.empty())
      problem = fmt::format("PE {}, {}: element {} has other bits than at first", world_.pe(), name(form),
                            wrong.first - out.begin());
  }

  World& world_;
  Stream& stream_;
  Steps& steps_;
  const Model& model_;
  Size tokens_;
  bool fp8_;
  Size rows_ = 0;
  RouteCall route_;
  DispatchGemmCall first_;
  GemmCombineCall second_;
  std::vector<std::uint16_t> first_result_;
};

void check_model(const Model& model, const std::vector<ExpertForm>& forms, Size tokens, int pes) {
  for (const bool fp8 : {false, true}) {
    std::string problem;
    std::mutex mutex;
    try {
      Steps steps(pes);
      CudaOptions options;
      options.heap_bytes = Size{24} << 30;
      options.timeout_s = options.arrival_timeout_s = kWaitSeconds;
      CudaThreads threads(pes, options);
      threads.run([&](World& world) {
        Stream stream = world.make_stream("main");
        Layer layer(world, stream, steps, model, tokens, fp8);
        std::string own;
        for (const ExpertForm form : forms) layer.run(form, own);
        const std::lock_guard lock(mutex);
        if (problem.empty()) problem = own;
      });
    } catch (const std::exception& error) {
      problem = error.what();
    }
    report(fmt::format("{} {} {} tokens on {} PEs", model.name, fp8 ? "fp8" : "bf16", tokens, pes), problem);
  }
}

}  // namespace

}  // namespace tandem::test

int main(int argc, char** argv) {
  using namespace tandem;
  const std::string model = argc > 1 ? argv[1] : "all";
  const std::string form = argc > 2 ? argv[2] : "both";
  const Size tokens = argc > 3 ? std::atoll(argv[3]) : 4096;
  std::vector<ExpertForm> forms;
  for (const ExpertForm one : {ExpertForm::kSequential, ExpertForm::kOverlapped})
    if (form == "both" || form == name(one)) forms.push_back(one);
  bool found = false;
  for (const test::Model& one : test::kModels)
    if (model == "all" || model == one.name) {
      found = true;
      if (!forms.empty() && tokens > 0) test::check_model(one, forms, tokens, 2);
    }
  if (!found || forms.empty() || tokens <= 0) {
    std::fprintf(stderr, "usage: %s [deepseek-v3|qwen3-30b|mixtral|all] [sequential|overlapped|both] [TOKENS]\n",
                 argv[0]);
    return 2;
  }
  return test::finish();
}
