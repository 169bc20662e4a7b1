#include "world/pes/pes.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <new>

#include "tandem/error.h"
#include "tandem/impl/cuda/stall.h"
#include "world/pes/stream.h"

namespace tandem::world {

namespace {

MemoryKind kind_of(bool control) { return control ? MemoryKind::kControl : MemoryKind::kData; }

}  // namespace

Pe make_pe(Devices& devices, int device) {
  Pe pe;
  pe.device = device;
  devices.start(device);
  pe.report = {new (devices.allocate_pinned(sizeof(WaitReport))) WaitReport{}, PinnedFree{&devices}};
  pe.stream = devices.make_own_stream(device);
  return pe;
}

Pes::Pes(Devices& devices, int pes, int device, int sharing, const WorldOptions& options)
    : devices_(devices),
      num_pes_(pes),
      sharing_(sharing),
      machine_(devices.describe(device)),
      early_launch_(options.early_launch && sharing == 1 && devices.has_early_launch(device)),
      timeout_s_(bootstrap::seconds_of(options.timeout_s, "timeout_s", "TANDEM_TIMEOUT_S")),
      arrival_timeout_s_(
          bootstrap::seconds_of(options.arrival_timeout_s, "arrival_timeout_s", "TANDEM_ARRIVAL_TIMEOUT_S")),
      silence_s_(bootstrap::seconds_of(3, "silence", "TANDEM_HEARTBEAT_S")),
      checks_calls_(options.check_calls) {
  if (pes > 0) set_node_size(pes);  // the rendezvous refuses other numbers
  machine_.gpu.sm_count = devices.share_of(machine_.gpu.sm_count, sharing);
  // PEs that share a GPU share its queues: nothing promises that one's copies do not stand behind another's, which
  // wait.
  if (sharing > 1) machine_.gpu.copy_engines = 0;
}

void Pes::set_node_size(int size) {
  node_size_ = size;
  machine_.pes_per_node = size;
  machine_.default_nodes = machine_.max_nodes = num_pes_ / size;
}

void Pes::settle(int pe) const {
  if (wire::Proxy* const own = proxy(pe)) own->settle();
}

void Pes::end_gets(int pe) const {
  if (wire::Proxy* const own = proxy(pe)) own->end_gets();
}

std::unique_ptr<wire::Proxy> Pes::make_proxy(int number, const bootstrap::Key& secret,
                                             std::unique_ptr<wire::Endpoint> endpoint,
                                             const std::shared_ptr<wire::Access>& access,
                                             std::optional<wire::Heartbeat> heartbeat) {
  const Context own = context(team(number));
  wire::ProxySetup setup;
  setup.place = place_of_pe(number);
  setup.access = access;
  setup.secret = secret;
  setup.seal = wire::seal_of_environment();
  setup.ring = [this, own] { devices_.wake_waits(own); };
  setup.is_over = [this, own] { return is_over(own); };
  setup.on_error = [this, number](const std::exception_ptr& error) { report(number, error); };
  setup.heartbeat = std::move(heartbeat);
  setup.silence_s = silence_s_;
  setup.name_of = [this](int pe) { return name_of(pe); };
  setup.search = search_of_proxy();
  return std::make_unique<wire::Proxy>(std::move(setup), std::move(endpoint), segment().bytes());
}

std::chrono::microseconds Pes::search_of_proxy() const {
  return bootstrap::microseconds_of(devices_.search_of_proxy(pes_of_computer()), "TANDEM_PROXY_SEARCH_US");
}

std::shared_ptr<wire::Access> Pes::make_access(int number, const wire::Endpoint& endpoint) const {
  return devices_.make_access(pe(number).device, place_of_pe(number), endpoint.room());
}

/// The host does not read the words of a GPU. A wait that gave up there has reported it.
bool Pes::is_over(const Context& own) const {
  if (devices_.kind() == DeviceKind::kHost) return cuda::peek(*own.abort) != 0;
  return has_ended_waits_ || cuda::peek(own.report->set) != 0;
}

void Pes::report(int number, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& why) {
    work_failed(number, bootstrap::failure_of(why));
  } catch (...) {
    work_failed(number, {bootstrap::FailureKind::kRuntimeFailure, "a kernel threw what is no std::exception"});
  }
}

StreamUse Pes::use(int number, const std::string& stream) {
  const auto on_error = [this, number](const std::exception_ptr& error) {
    end_gets(number);
    report(number, error);
  };
  wire::Proxy* const own = proxy(number);
  wire::Mailbox* const mailbox = own == nullptr ? nullptr : &own->mailbox();
  wire::Access* const access = own == nullptr ? nullptr : &own->access();
  return {pe(number).device, number, num_pes(),     stream,   machine_.gpu.sm_count,        sharing_,
          mailbox,           access, early_launch_, on_error, static_cast<const Pes*>(this)};
}

std::uint32_t* Pes::wait_words_of(int pe) const {
  return reinterpret_cast<std::uint32_t*>(segment().base() + pe * segment().stride() + kWaitWordsOffset);
}

Context Pes::context(const Team& team) const {
  Context context;
  context.team = team;
  const int me = team.world_pe(team.me);
  context.abort = wait_words_of(me);
  context.abort_on_pe0 = wait_words_of(0);
  context.abort_stride = segment().stride();
  context.world_pes = num_pes_;
  context.world_pe = me;
  context.report = pe(me).report.get();
  context.checks_calls = checks_calls_;
  context.timeout_ns = static_cast<std::uint64_t>(timeout_s_ * 1e9);
  context.arrival_timeout_ns = static_cast<std::uint64_t>(arrival_timeout_s_ * 1e9);
  return context;
}

void Pes::end_waits(int number) const {
  has_ended_waits_ = true;
  pe(number).stream->end_waits(context(team(number)));
}

void Pes::load_kernels(const std::vector<int>& on_devices) {
  kernels_ = devices_.load_kernels(on_devices, needs_proxies());
}

void Pes::check_launch(const detail::KernelLaunch& kernel) const {
  if (kernel.grid.blocks < 1)
    throw InvalidArgument(
        fmt::format("launch of {}: {} blocks given, at least 1 is needed", kernel.name(), kernel.grid.blocks));
  kernels_->check(kernel, sharing_);
}

/// Signals start as zeros, data as NaN.
void Pes::clear(const Pe& pe, Size part, Size offset, Size bytes, MemoryKind kind) const {
  std::byte* const memory = segment().base() + part * segment().stride() + offset;
  const int value = kind == MemoryKind::kControl ? 0 : 0xFF;
  devices_.memory().commit(memory, bytes);
  pe.stream->fill(memory, value, bytes);
  pe.stream->synchronize();
}

namespace {

/// Returns the object of a wait. Waits for the proxy have the PE's WaitWords as their word.
std::string awaited(const Pes& pes, int pe, const void* word, Epoch expected, Epoch found) {
  const wire::Proxy* const proxy = pes.proxy(pe);
  if (proxy == nullptr || word != pes.context(pes.team(pe)).abort)
    return fmt::format("{} >= {}, found {}", pes.describe(word), expected, found);
  const wire::Requests requests = proxy->requests();
  return fmt::format("the proxy of PE {} to carry out request {}, found {} (requests: {} posted, {} sent, {} answered)",
                     pe, expected, found, requests.posted, requests.sent, requests.answered);
}

}  // namespace

bootstrap::Failure report_of(const Pes& pes, int pe) {
  using bootstrap::FailureKind;
  const volatile WaitReport& report = *pes.pe(pe).report;
  const auto expected = static_cast<Epoch>(report.expected);
  const auto found = static_cast<Epoch>(report.found);
  const int block = report.block;
  const std::string word = pes.describe(const_cast<const void*>(report.word));
  if (report.set == cuda::kTimedOut) {
    const int other = report.without_wait;
    return {FailureKind::kTimeout,
            fmt::format("block {} gave up waiting for {}; {}", block,
                        awaited(pes, pe, const_cast<const void*>(report.word), expected, found),
                        other < 0 ? "all PEs were waiting"
                                  : fmt::format("PE {} was not waiting: it had not come, or computed", other))};
  }
  if (report.set == cuda::kCallsOfOtherCounts)
    return {FailureKind::kInvalidArgument,
            fmt::format("calls with count {}, PE {} of the team with count {} ({})", expected, block, found, word)};
  return {FailureKind::kInvalidArgument,
          fmt::format("makes another call than PE {} of the team: operation, type, root or algorithm differ ({})",
                      block, word)};
}

bootstrap::Failure abort_report(const Pes& pes, int pe) {
  bootstrap::Failure failure = report_of(pes, pe);
  const volatile WaitReport& report = *pes.pe(pe).report;
  if (const MismatchDetector* const calls = pes.calls(pe); calls != nullptr && report.set == cuda::kTimedOut)
    failure.text += calls->apart();
  return failure;
}

std::string ended_wait_of(const Pes& pes, int pe) {
  const volatile WaitReport::Ended& ended = pes.pe(pe).report->ended;
  if (ended.is_set == 0) return "";
  const int block = ended.block;
  const auto expected = static_cast<Epoch>(ended.expected);
  const auto found = static_cast<Epoch>(ended.found);
  return fmt::format("PE {}: block {} was waiting for {}", pe, block,
                     awaited(pes, pe, const_cast<const void*>(ended.word), expected, found));
}

void copy_and_wait(const Pe& pe, void* to, const void* from, Size bytes) {
  if (bytes == 0) return;
  pe.stream->copy_host(to, from, bytes);
  pe.stream->synchronize();
}

void WorldView::copy(void* to, const void* from, Size bytes) const {
  wire::Proxy* const proxy = pes_.proxy(pe_);
  if (proxy == nullptr || bytes == 0 || !proxy->copy(to, from, bytes))
    return copy_and_wait(pes_.pe(pe_), to, from, bytes);
  if (const auto end = pes_.end(pe_, std::nullopt)) {
    pes_.end_gets(pe_);
    end->raise();
  }
}

void WorldView::barrier() {
  pes_.settle(pe_);
  pes_.barrier();
}

void WorldView::free_symmetric(const void* memory) {
  pes_.settle(pe_);
  pes_.free(pe_, true, offset_of(memory));
}

void* WorldView::allocate_symmetric(Size bytes, const std::string& name, Size element_bytes, bool control) {
  pes_.settle(pe_);  // memory that is used again gets no late signal
  const CurrentDevice current(pes_.devices(), pes_.pe(pe_).device);
  return pes_.segment().base() + pes_.allocate(pe_, true, kind_of(control), bytes, name, element_bytes);
}

void* WorldView::allocate_local(Size bytes, const std::string& name, Size element_bytes, bool control) {
  const CurrentDevice current(pes_.devices(), pes_.pe(pe_).device);
  const Size offset = pes_.allocate(pe_, false, kind_of(control), bytes, name, element_bytes);
  return pes_.segment().base() + pe_ * stride() + offset;
}

/// Returns the offset in this PE's part; -1 elsewhere, where no buffer starts.
Size WorldView::offset_of(const void* memory) const {
  const Size offset = static_cast<const std::byte*>(memory) - pes_.segment().base() - pe_ * stride();
  return offset >= 0 && offset < stride() ? offset : -1;
}

std::optional<Size> WorldView::bytes_from(const void* memory) const {
  const Size offset = offset_of(memory);
  if (offset < 0) return std::nullopt;
  return pes_.bytes_from(pe_, offset).value_or(0);
}

std::shared_ptr<detail::StreamBackend> WorldView::make_stream(const std::string& name) {
  return std::make_shared<PeStream>(pes_, pe_, pes_.devices().make_stream(pes_.use(pe_, name), pes_.profiler()));
}

void WorldView::check_gemm(const Gemm& gemm) const { pes_.devices().check_fused_gemm(pes_.pe(pe_).device, gemm); }

double WorldView::time_us() const {
  if (pes_.profiler() != nullptr) return pes_.profiler()->time_us();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

}  // namespace tandem::world
