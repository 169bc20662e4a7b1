#include "world/pes/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "tandem/error.h"
#include "tandem/impl/cuda/stall.h"
#include "world/pes/nodes.h"
#include "world/pes/profiler.h"

namespace tandem {

namespace world {

namespace {

/// That of PE 0. Throws where there are no PEs or devices.
int first_device(Devices& devices, int pes) {
  if (pes < 1)
    throw InvalidArgument(fmt::format("pes: {} given, at least 1 is needed; there are {} devices of the {} backend",
                                      pes, devices.count(), devices.name()));
  devices.require_any();
  const Size most = Size{devices.count()} * devices.most_sharing();
  if (pes > most)
    throw InvalidArgument(
        fmt::format("pes: {} given, allowed are 1 to {} PEs of one process on {}; run them as several "
                    "processes (`tandem launch`)",
                    pes, most, devices.name_of(0)));
  return 0;
}

/// Devices are given out in turns, so none has more PEs than the first.
int most_on_a_device(Devices& devices, int pes) {
  return static_cast<int>(ceil_div(pes, std::max(1, devices.count())));
}

std::vector<Pe> make_pes(Devices& devices, int count) {
  std::vector<Pe> pes;
  pes.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) pes.push_back(make_pe(devices, i % devices.count()));
  return pes;
}

std::vector<int> numbers_of(const std::vector<Pe>& pes) {
  std::vector<int> numbers;
  numbers.reserve(pes.size());
  for (const Pe& pe : pes) numbers.push_back(pe.device);
  return numbers;
}

}  // namespace

Threads::Threads(Devices& devices, int pes, const WorldOptions& options, const wire::Disorder& disorder)
    : Pes(devices, pes, first_device(devices, pes), most_on_a_device(devices, pes), options),
      pes_(make_pes(devices, pes)),
      allocator_(pes, options.heap_bytes, options.heap_limit_bytes),
      segment_(devices, numbers_of(pes_), {allocator_.range_bytes(), allocator_.most_bytes()}),
      records_(pes) {
  set_node_size(node_size_of(pes));
  std::vector<int> used = numbers_of(pes_);
  used.resize(static_cast<std::size_t>(std::min(pes, devices.count())));  // the rest are these once more
  load_kernels(used);
  ProfilerSetup recording;
  for (int i = 0; i < pes; ++i) {
    const Size words = cuda::wait_words_bytes(pes);
    allocator_.allocate_symmetric(i, MemoryKind::kControl, words, kWaitWordsName, words);
    devices.set_current(pe(i).device);
    clear(pe(i), i, kWaitWordsOffset, words, MemoryKind::kControl);
    if (options.record.on) recording.pes.push_back(clock_of(i));
    if (options.compare_calls)
      calls_.push_back(std::make_unique<MismatchDetector>(
          i, [this](int pe, std::size_t plan) { return records_.of(pe, plan); },
          [this, i](const std::string& text) {
            fail({bootstrap::FailureKind::kInvalidArgument, fmt::format("PE {}: {}", i, text)});
          }));
  }
  if (options.record.on) profiler_ = make_profiler(*this, std::move(recording), options);
  if (needs_proxies()) start_proxies(disorder);
}

void Threads::start_proxies(const wire::Disorder& disorder) {
  const wire::Loop loop(num_pes(), disorder);
  const bootstrap::Key secret = bootstrap::random_key();
  for (int i = 0; i < num_pes(); ++i) {
    auto endpoint = loop.endpoint(i);
    const auto access = make_access(i, *endpoint);
    proxies_.push_back(make_proxy(i, secret, std::move(endpoint), access));
  }
}

ClockPe Threads::clock_of(int number) {
  const Size bytes = devices().clock_mail_bytes();
  const Size mail = allocator_.allocate_symmetric(number, MemoryKind::kControl, bytes, "clock mail", bytes);
  clear(pe(number), number, mail, bytes, MemoryKind::kControl);
  const int device = pe(number).device;
  return {device, device, pe(number).stream.get(), segment_.base() + number * segment_.stride() + mail};
}

Threads::~Threads() {
  drain();
  proxies_.clear();
  for (Pe& pe : pes_) {
    try {
      const CurrentDevice current(devices(), pe.device);
      pe.stream.reset();  // a stream is destroyed on its own GPU
    } catch (const RuntimeFailure&) {
      // A GPU that is lost has no stream left.
    }
  }
}

Size Threads::allocate(int number, bool symmetric, MemoryKind kind, Size bytes, const std::string& name,
                       Size element_bytes) {
  Size offset = 0;
  const MemoryKind place = place_of(kind, bytes, allocator_);
  // Whether the heap grows must not depend on who is first.
  if (symmetric && allocator_.can_grow()) barrier();
  {
    // The lock keeps the checked room until the allocation.
    std::unique_lock lock(mutex_);
    if (symmetric && allocator_.needs_barrier(number, place, bytes)) {
      lock.unlock();
      barrier();
      lock.lock();
      allocator_.reclaim();
    }
    if (const Size more = symmetric && place == MemoryKind::kData ? allocator_.growth_for(number, bytes) : 0) {
      segment_.grow(numbers_of(pes_), more);
      allocator_.grow(more);
      for (const auto& proxy : proxies_) proxy->set_bytes(segment_.bytes());
    }
    offset = symmetric ? allocator_.allocate_symmetric(number, place, bytes, name, element_bytes)
                       : allocator_.allocate_local(number, place, bytes, name, element_bytes);
  }
  clear(pe(number), number, offset, bytes, kind);
  if (symmetric) barrier();  // a peer's first write must not meet the clearing
  return offset;
}

void Threads::release(int number, Size offset) {
  const std::lock_guard lock(mutex_);
  allocator_.release_symmetric(number, offset);
}

void Threads::free(int number, bool symmetric, Size offset) {
  if (symmetric) barrier();
  const std::lock_guard lock(mutex_);
  symmetric ? allocator_.free_symmetric(number, offset) : allocator_.free_local(number, offset);
}

std::string Threads::describe(const void* address) const {
  const std::lock_guard lock(mutex_);
  const int pe = segment_.pe_of(address);
  return allocator_.describe(pe, static_cast<const std::byte*>(address) - segment_.base() - pe * segment_.stride());
}

std::optional<Size> Threads::bytes_from(int number, Size offset) const {
  const std::lock_guard lock(mutex_);
  return allocator_.bytes_from(number, offset);
}

void Threads::barrier() {
  std::unique_lock lock(mutex_);
  const std::uint64_t round = round_;
  if (++waiting_ == num_pes()) {
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return round_ != round || failure_; });
  if (round_ == round) failure_->raise();
}

void Threads::fail(const bootstrap::Failure& why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) {
    failure_ = why;
    log_line(LogLevel::kWarn, [&] { return "the world is over: " + why.text; });
  }
  changed_.notify_all();
  for (int i = 0; i < num_pes(); ++i) end_waits(i);
}

void Threads::work_failed(int number, const bootstrap::Failure& why) {
  fail({why.kind, fmt::format("PE {}: {}", number, why.text)});
}

std::optional<bootstrap::Failure> Threads::end(int, std::optional<std::uint32_t> by) const {
  // `by` alone is not enough: a PE that finds differing calls overwrites the number of the PE that reported first.
  for (int other = 0; by && other < num_pes(); ++other) {
    if (const volatile WaitReport& report = *pe(other).report; report.set == 0) continue;
    bootstrap::Failure failure = report_of(*this, other);
    failure.text = fmt::format("PE {}: {}", other, failure.text);
    return failure;
  }
  const std::lock_guard lock(mutex_);
  if (by && !failure_)
    return bootstrap::Failure{bootstrap::FailureKind::kTimeout, "a PE gave up a wait, and did not say which"};
  return failure_;
}

void Threads::drain() const {
  for (const Pe& pe : pes_) devices().wait_until_idle(pe.device, static_cast<const Pes*>(this));
}

/// A time-out with what the other PEs were waiting for: all kernels have ended.
[[noreturn]] void rethrow_with_waits(const Threads& threads, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Timeout& timeout) {
    std::string text = timeout.what();
    for (int pe = 0; pe < threads.num_pes(); ++pe)
      if (const std::string wait = ended_wait_of(threads, pe); text.find(wait) == std::string::npos)
        text += "; " + wait;
    throw Timeout(text);
  }
}

void run_pe(Threads& threads, int pe, const std::function<void(World&)>& program) {
  threads.devices().set_current(threads.pe(pe).device);
  WorldView view(threads, pe);
  World world(view);
  program(world);
}

}  // namespace world

struct WorldThreads::State : world::Threads {
  using Threads::Threads;
};

WorldThreads::WorldThreads(int pes, const WorldOptions& options) {
  world::Devices& devices = world::devices_of(options.kind);
  devices.register_kernels(options.record.on);
  state_ = std::make_unique<State>(devices, pes, options);
  log_line(LogLevel::kInfo,
           [&] { return fmt::format("world of {} PEs, threads of this process, {} backend", pes, devices.name()); });
}

WorldThreads::~WorldThreads() = default;

DeviceKind WorldThreads::kind() const { return state_->devices().kind(); }

void WorldThreads::run(const std::function<void(World&)>& program) {
  if (state_->profiler() != nullptr) state_->profiler()->align();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(state_->num_pes()));
  std::mutex mutex;
  std::exception_ptr error;
  const auto end_with = [&](const std::exception_ptr& why, const std::string& text) {
    const std::lock_guard lock(mutex);
    if (!error) error = why;
    state_->fail({bootstrap::FailureKind::kRuntimeFailure, text});
  };
  const auto run_one = [&](int pe) {
    try {
      world::run_pe(*state_, pe, program);
    } catch (...) {
      end_with(std::current_exception(), "the host program of another PE has failed");
    }
  };
  for (int pe = 0; pe < state_->num_pes(); ++pe) {
    try {
      threads.emplace_back(run_one, pe);
    } catch (const std::system_error& refused) {  // those that have begun wait for it
      const std::string text = fmt::format("the thread of PE {} could not be started: {}", pe, refused.what());
      end_with(std::make_exception_ptr(RuntimeFailure(text)), text);
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  state_->drain();
  if (error) world::rethrow_with_waits(*state_, error);
  if (state_->profiler() != nullptr) state_->profiler()->align();
}

void WorldThreads::record(int pe, bool on) {
  if (pe < 0 || pe >= state_->num_pes())
    throw InvalidArgument(fmt::format("pe: {} given, allowed are 0 to {}", pe, state_->num_pes() - 1));
  world::profiler_of(*state_).turn(pe, on);
}

const trace::Timeline& WorldThreads::timeline() { return world::profiler_of(*state_).timeline(); }
const ProfileInfo& WorldThreads::profile_info() { return world::profiler_of(*state_).info(); }

}  // namespace tandem
