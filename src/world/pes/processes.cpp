#include "world/pes/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <set>
#include <thread>

#include "tandem/error.h"
#include "tandem/impl/cuda/stall.h"
#include "wire/fabric/fabric.h"
#include "world/pes/nodes.h"
#include "world/pes/shared_gpu.h"

namespace tandem::world {

namespace {

/// The most released buffers of a kind that a PE reports at an allocation, lowest offsets first. A message does not
/// hold many more.
constexpr std::size_t kMostReleased = 4096;

/// Throws InvalidArgument if PEs give different values.
void check_alike(const std::vector<Bytes>& answers, int me, const char* what) {
  const std::uint64_t own = Reader(answers[static_cast<std::size_t>(me)]).u64();
  for (std::size_t pe = 0; pe < answers.size(); ++pe) {
    const std::uint64_t other = Reader(answers[pe]).u64();
    if (other != own)
      throw InvalidArgument(
          fmt::format("{}: PE {} gives {}, PE {} gives {}; all PEs must give the same", what, me, own, pe, other));
  }
}

/// Returns the size of the control part, in units of the memory of GPUs.
Size control_bytes_of(const WorldOptions& options) {
  if (options.control_bytes == 0) return HeapAllocator::kControlBytes;
  if (options.control_bytes < HeapAllocator::kGrain || options.control_bytes > HeapAllocator::kControlBytes)
    throw InvalidArgument(fmt::format("control_bytes: {} given, allowed are 0 and {} to {}", options.control_bytes,
                                      HeapAllocator::kGrain, HeapAllocator::kControlBytes));
  return round_up(options.control_bytes, HeapAllocator::kGrain);
}

}  // namespace

Processes::Processes(Devices& devices, const UniqueId& id, int pe, int pes, int device, const WorldOptions& options)
    : Pes(devices, pes, device, 1, options),
      exceptions_before_(std::uncaught_exceptions()),
      member_(id, pe, pes, options.join_timeout_s),
      exchange_(member_.or_fail([&] { return bootstrap::FdExchange(member_); })),
      device_numbers_(member_.or_fail([&] { return number_devices(member_, devices, device); })),
      pe_(member_.or_fail([&] { return make_pe(devices, device); })),
      sharing_(member_.or_fail([&] { return agree_on_handles(member_, exchange_, devices, device); })),
      pes_of_host_(member_.or_fail([&] { return count_pes_of_host(); })),
      allocator_(member_.or_fail([&] {
        return HeapAllocator(pes, options.heap_bytes, options.heap_limit_bytes, false, control_bytes_of(options));
      })),
      segment_(member_.or_fail([&] {
        return Segment(devices, member_, exchange_, sharing_, device,
                       {allocator_.range_bytes(), allocator_.most_bytes(), allocator_.control_bytes()});
      })),
      far_calls_(pes) {
  member_.or_fail([&] { prepare(options); });
}

/// Checks that all PEs have the same options, and sets up the rest of the world.
void Processes::prepare(const WorldOptions& options) {
  const int pe = me();
  if (are_shared(device_numbers_)) note_turns();
  const int node_size = node_size_of(pes_of_host_);
  check_alike(member_.all_gather(Writer().u64(static_cast<std::uint64_t>(node_size)).result(), "nodes"), pe,
              "TANDEM_NODE_SIZE, or the number of PEs of a host");
  set_node_size(node_size);
  check_alike(member_.all_gather(Writer().u64(static_cast<std::uint64_t>(allocator_.range_bytes())).result(), "heap"),
              pe, "heap_bytes, with what the library adds");
  check_alike(member_.all_gather(Writer().u64(static_cast<std::uint64_t>(allocator_.most_bytes())).result(), "heap"),
              pe, "heap_limit_bytes, with what the library adds");
  const std::uint64_t choices = (options.compare_calls ? 1 : 0) + (options.record.on ? 2 : 0);
  check_alike(member_.all_gather(Writer().u64(choices).result(), "options"), pe,
              "compare_calls (1) and record.on (2), summed up");
  const Size words = cuda::wait_words_bytes(num_pes());
  allocator_.allocate_symmetric(pe, MemoryKind::kControl, words, kWaitWordsName, words);
  clear(pe_, pe, kWaitWordsOffset, words, MemoryKind::kControl);
  if (options.self_test) test_links();
  if (options.compare_calls) share_calls();
  if (needs_proxies()) start_proxy();
  load_kernels({pe_.device});
  if (options.record.on) start_profiler(options);
  member_.barrier("the world is ready");
  member_.on_failure([this] { end_waits(me()); });
}

Processes::~Processes() {
  if (!member_.is_own_process()) {        // the parent's, of which this process is a child
    static_cast<void>(proxy_.release());  // its thread is the parent's
    return;
  }
  // An exception on its way through the host program: the others are not left to wait for this PE.
  if (std::uncaught_exceptions() > exceptions_before_)
    member_.fail({bootstrap::FailureKind::kRuntimeFailure, "its host program has failed"});
  wait_for_device();
  settle(me());
  member_.expect_end();
  barrier_or_report("the world's end");  // peers read and write this PE's memory until they are here too
}

std::string Processes::waits() const {
  std::string text;
  if (devices().kind() == DeviceKind::kHost) {  // whose memory the host reads
    const Context own = context(team(me()));
    const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    std::vector<int> absent;
    for (int pe = 0; pe < num_pes(); ++pe)
      if (pe != me() && cuda::peek(cuda::seen_looks(own)[pe].changed_ns) + cuda::kStaleNs < now) absent.push_back(pe);
    if (cuda::peek(cuda::wait_words(own, me())->look) + cuda::kStaleNs >= now)
      text = absent.empty() ? "all PEs are waiting"
                            : fmt::format("PE {} not there: it has not come, or computes", bootstrap::list_of(absent));
  }
  return calls_ == nullptr ? text : text + calls_->apart();
}

WorldProcess::MemoryUse Processes::memory_use() const {
  const Size given_back = segment_.suspendable();
  const bool is_suspended = segment_.is_suspended();
  return {segment_.bytes() - (is_suspended ? 0 : given_back), given_back, is_suspended};
}

void Processes::suspend() {
  if (proxy_ != nullptr) throw Unsupported("suspension: a world of several nodes is not suspended");
  if (segment_.is_suspended()) throw InvalidArgument("suspension: the world is suspended already");
  wait_for_device();
  try {
    member_.all_or_none("suspension", [&] {
      suspended_.resize(static_cast<std::size_t>(segment_.suspendable()));
      copy_and_wait(pe_, suspended_.data(), data_begin(), segment_.suspendable());
    });
  } catch (...) {
    suspended_ = {};  // another PE may have failed
    throw;
  }
  segment_.suspend();  // no PE touches the memory: all PEs' work has ended
}

void Processes::resume() {
  if (!segment_.is_suspended()) throw InvalidArgument("resumption: the world is not suspended");
  segment_.resume(member_, exchange_, pe_.device);
  member_.or_fail([&] {
    devices().memory().commit(data_begin(), segment_.suspendable());
    copy_and_wait(pe_, data_begin(), suspended_.data(), segment_.suspendable());
  });
  suspended_ = {};
  member_.barrier("resumption");
}

std::byte* Processes::data_begin() const {
  return segment_.base() + me() * segment_.stride() + allocator_.control_bytes();
}

void Processes::leave() {
  if (!member_.is_own_process()) return;
  wait_for_device();
  settle(me());
  barrier_or_report("the end of all calls");
}

void Processes::wait_for_device() const { devices().wait_until_idle(pe_.device, static_cast<const Pes*>(this)); }

void Processes::barrier_or_report(const char* where) {
  try {
    if (const auto failure = unreported_failure())
      member_.fail(*failure);
    else if (!member_.failure())
      member_.barrier(where);
  } catch (const std::exception&) {
    // A lost PE neither joins the barrier nor touches memory, and mappings keep this PE's memory alive.
  }
}

/// Returns why a kernel ended its wait, if that is not reported yet: the caller may synchronize without this library.
std::optional<bootstrap::Failure> Processes::unreported_failure() const {
  if (member_.failure()) return std::nullopt;
  const volatile WaitReport& report = *pe_.report;
  if (report.set != 0) return abort_report(*this, me());
  const std::uint32_t by = report.ended_by;
  return by != 0 ? end(me(), by) : std::nullopt;
}

/// GPUs of several hosts that share memory by fabric handles are as those of one host.
int Processes::count_pes_of_host() const {
  if (!devices().has_mailbox() || sharing_.spans_hosts) return num_pes();
  std::vector<HostOfPe> hosts;
  hosts.reserve(static_cast<std::size_t>(num_pes()));
  for (int pe = 0; pe < num_pes(); ++pe) hosts.push_back({exchange_.host_of(pe), exchange_.host_name_of(pe)});
  return pes_per_host(hosts);
}

std::string Processes::name_of(int pe) const {
  return has_hosts() ? fmt::format("PE {} (host {})", pe, exchange_.host_name_of(pe)) : fmt::format("PE {}", pe);
}

/// Connects this PE with those of other nodes, which have the same engine.
void Processes::start_proxy() {
  std::unique_ptr<wire::Endpoint> endpoint;
  member_.all_or_none("messages between nodes",
                      [&] { endpoint = wire::make_fabric_endpoint(member_.address(), search_of_proxy()); });
  const char* const seal = wire::seal_of_environment() == wire::Seal::kAll ? "all" : "headers";
  const std::string engine = fmt::format("{}, TANDEM_SEAL={}", endpoint->name(), seal);
  const Bytes own = Writer().text(engine).text(member_.address()).bytes(endpoint->address()).result();
  std::vector<Bytes> addresses;
  std::vector<std::string> host_addresses;
  for (const Bytes& blob : member_.all_gather(own, "addresses of messages")) {
    Reader reader(blob);
    const int pe = static_cast<int>(addresses.size());
    if (const std::string its = reader.text(); its != engine)
      throw Unsupported(fmt::format("several nodes: {} has {}, {} has {}; all must have the same", name_of(pe), its,
                                    name_of(me()), engine));
    host_addresses.push_back(reader.text());
    const View address = reader.bytes();
    const bool is_near = pe / node_size() == me() / node_size();
    addresses.push_back(is_near ? Bytes{} : Bytes(address.begin(), address.end()));
  }
  endpoint->connect(addresses);
  if (has_hosts())
    pulse_memory_ = std::make_unique<bootstrap::SharedMemory>(
        exchange_, exchange_.host_team(), static_cast<std::size_t>(num_pes()) * sizeof(wire::Pulse));
  const auto access = make_access(me(), *endpoint);
  proxy_ = make_proxy(me(), bootstrap::derive(member_.secret(), "messages between nodes"), std::move(endpoint), access,
                      has_hosts() ? std::optional(heartbeat(*access)) : std::nullopt);
  if (has_hosts()) wait_for_hosts(host_addresses);
}

/// Waits for the first heartbeat of each PE of another host. A firewall, or an address that others do not reach, is
/// found now and not in the first collective.
void Processes::wait_for_hosts(const std::vector<std::string>& addresses) const {
  const double seconds = bootstrap::seconds_of(30, "connect", "TANDEM_CONNECT_S");
  const bootstrap::Deadline deadline(seconds);
  for (;;) {
    const std::vector<int> unheard = proxy_->unheard();
    if (unheard.empty()) return;
    if (const auto failure = member_.failure()) failure->raise();
    if (deadline.passed())
      throw RuntimeFailure(fmt::format(
          "no message of {} at {} has reached {} at {} in {} s: a firewall drops it, or the hosts do not reach each "
          "other's address; all TCP ports have to be open between them (FI_TCP_PORT_LOW_RANGE and "
          "FI_TCP_PORT_HIGH_RANGE narrow them, TANDEM_CONNECT_S is the limit)",
          name_of(unheard[0]), addresses[static_cast<std::size_t>(unheard[0])], name_of(me()), member_.address(),
          seconds));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// The looks of PEs on other hosts go to the stand-ins of their WaitWords, where waits of this host look for them.
wire::Heartbeat Processes::heartbeat(wire::Access& access) {
  const auto look = [this](int pe) {
    return reinterpret_cast<Signal*>(&reinterpret_cast<cuda::WaitWords*>(wait_words_of(pe))->look);
  };
  wire::Heartbeat heartbeat;
  heartbeat.host_size = pes_of_host_;
  heartbeat.pulses = reinterpret_cast<wire::Pulse*>(pulse_memory_->on(0));
  heartbeat.look = [own = look(me()), &access] { return access.value_of(*own); };
  heartbeat.on_look = [this, look, &access](int pe, std::uint64_t its) {
    if (!exchange_.is_on_this_host(pe)) access.change(*look(pe), SignalOp::kSet, its);
  };
  if (calls_ != nullptr) {
    heartbeat.news = [this](int pe, std::size_t most) {
      return exchange_.is_on_this_host(pe) ? Bytes{} : calls_->news_for(pe, most);
    };
    heartbeat.on_news = [this](int pe, View news) { take_calls(pe, news); };
  }
  heartbeat.on_silence = [this](const std::vector<int>& pes) { lose(pes); };
  return heartbeat;
}

void Processes::take_calls(int pe, View news) {
  try {
    calls_->take(pe, news);
  } catch (const InvalidArgument&) {
    // It has ended the world.
  }
}

void Processes::lose(const std::vector<int>& pes) {
  std::string names;
  for (const int pe : pes) names += (names.empty() ? "" : ", ") + name_of(pe);
  member_.fail_here({bootstrap::FailureKind::kRuntimeFailure,
                     fmt::format("{} not heard for {} s: the process or its host is stopped, or the link is cut "
                                 "(TANDEM_HEARTBEAT_S)",
                                 names, silence_s())});
}

/// All PEs allocate the same, and it fits on all, before any of them does. Returns what the one with the largest
/// buffers of its own has left beside them.
Size Processes::agree(MemoryKind kind, Size bytes, const std::string& name) {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  Writer own;
  own.u64(number(kind)).u64(number(bytes)).text(name).u64(number(allocator_.left(kind)));
  std::set<Size> released_by_all;
  for (const Size offset : allocator_.released(me()))
    if (allocator_.kind_at(offset) == kind && released_by_all.size() < kMostReleased) released_by_all.insert(offset);
  own.u64(number(released_by_all.size()));
  for (const Size offset : released_by_all) own.u64(number(offset));
  const std::vector<Bytes> all = member_.all_gather(own.result(), "symmetric allocation");
  Size least = allocator_.left(kind);
  std::size_t fullest = static_cast<std::size_t>(me());
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    Reader other(all[pe]);
    const auto its_kind = static_cast<MemoryKind>(other.u64());
    const auto its_bytes = static_cast<Size>(other.u64());
    const std::string its_name = other.text();
    const auto its_left = static_cast<Size>(other.u64());
    if (its_kind != kind || its_bytes != bytes || its_name != name)
      throw InvalidArgument(
          fmt::format("symmetric allocation: PE {} asks for '{}' of {} bytes, PE {} for '{}' of {} bytes; all PEs must "
                      "allocate the same in the same order",
                      me(), name, bytes, pe, its_name, its_bytes));
    if (its_left < least || (its_left == least && pe < fullest)) fullest = pe;
    least = std::min(least, its_left);
    std::set<Size> its_released;
    for (std::uint64_t i = other.u64(); i > 0; --i) its_released.insert(static_cast<Size>(other.u64()));
    std::erase_if(released_by_all, [&](Size offset) { return !its_released.contains(offset); });
  }
  // Freed symmetric buffers give every PE equally much more.
  const Size before = allocator_.left(kind);
  allocator_.reclaim(released_by_all);
  least += allocator_.left(kind) - before;
  if (const Size left = allocator_.largest(kind, least); left < bytes)
    throw OutOfMemory(fmt::format("PE {}: no room for '{}': {} bytes asked, {} bytes of {} memory left", fullest, name,
                                  bytes, left, kind == MemoryKind::kControl ? "control" : "data"));
  return least;
}

Size Processes::allocate(int, bool symmetric, MemoryKind kind, Size bytes, const std::string& name,
                         Size element_bytes) {
  const MemoryKind place = place_of(kind, bytes, allocator_);
  Size offset = 0;
  if (symmetric) {
    const Size left = agree(place, bytes, name);
    if (const Size more = place == MemoryKind::kData ? allocator_.growth_for(me(), bytes, left) : 0) {
      segment_.grow(member_, exchange_, pe_.device, more);
      allocator_.grow(more);
      if (proxy_ != nullptr) proxy_->set_bytes(segment_.bytes());
    }
    offset = allocator_.allocate_symmetric(me(), place, bytes, name, element_bytes, left);
  } else {
    offset = allocator_.allocate_local(me(), place, bytes, name, element_bytes);
  }
  const auto clear_it = [&] { clear(pe_, me(), offset, bytes, kind); };
  if (symmetric)
    member_.all_or_none("a symmetric buffer is cleared", clear_it);
  else
    clear_it();
  return offset;
}

void Processes::release(int, Size offset) { allocator_.release_symmetric(me(), offset); }

void Processes::free(int, bool symmetric, Size offset) {
  if (!symmetric) return allocator_.free_local(me(), offset);
  // Every PE learns what the others free before any PE throws.
  const auto offsets = member_.all_gather(Writer().u64(static_cast<std::uint64_t>(offset)).result(), "symmetric free");
  for (std::size_t pe = 0; pe < offsets.size(); ++pe)
    if (const auto other = static_cast<Size>(Reader(offsets[pe]).u64()); other != offset)
      throw InvalidArgument(fmt::format(
          "free: PE {} frees the buffer at offset {}, PE {} the one at {}; all PEs must free the same in the "
          "same order",
          me(), offset, pe, other));
  allocator_.free_symmetric(me(), offset);
}

std::string Processes::describe(const void* address) const {
  const int pe = segment_.pe_of(address);
  return allocator_.describe(pe, static_cast<const std::byte*>(address) - segment_.base() - pe * segment_.stride());
}

std::optional<bootstrap::Failure> Processes::end(int, std::optional<std::uint32_t> by) const {
  // The abort word may be faster than the text.
  for (int i = 0; by && i < 200 && !member_.failure(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (auto failure = member_.failure()) return failure;
  if (!by) return std::nullopt;
  return bootstrap::Failure{bootstrap::FailureKind::kTimeout,
                            fmt::format("PE {} gave up a wait, and did not say which", *by - 1)};
}

/// A kernel's report becomes text only in the thread that synchronizes, which owns the names of memory.
void Processes::check_alive() const {
  if (const auto failure = member_.failure()) {
    end_gets(me());
    failure->raise();
  }
  const volatile WaitReport& report = *pe_.report;
  if (report.set == cuda::kCallsOfOtherCounts || report.set == cuda::kOtherCalls)
    throw InvalidArgument("calls of the PEs differ; synchronizing a stream says which");
  if (report.set != 0 || report.ended_by != 0)
    throw Timeout("a wait on the device gave up; synchronizing a stream says which");
}

/// The memory in which the PEs of a host compare what they call. Heartbeats have the calls of other hosts.
void Processes::share_calls() {
  const Team host = exchange_.host_team();
  if (host.size < num_pes() && !has_hosts()) return;  // nothing but memory of GPUs in common
  constexpr std::size_t plans = 4096;
  call_memory_ = std::make_unique<bootstrap::SharedMemory>(exchange_, host, plans * sizeof(PlanCalls));
  const auto records = [this, host](int pe, std::size_t plan) -> PlanCalls* {
    if (plan >= plans) return nullptr;
    if (!exchange_.is_on_this_host(pe)) return far_calls_.of(pe, plan);
    return reinterpret_cast<PlanCalls*>(call_memory_->on(pe - host.first)) + plan;
  };
  const auto fail_world = [this](const std::string& text) {
    member_.fail({bootstrap::FailureKind::kInvalidArgument, text});
  };
  const auto is_near = [this](int pe) { return exchange_.is_on_this_host(pe); };
  calls_ = std::make_unique<MismatchDetector>(me(), records, fail_world, is_near);
}

void Processes::test_links() {
  const int tested = pes_of_host_;
  const int first = me() / tested * tested;
  const Size bytes = tested * kSelfTestWords * Size{8};
  SelfTest test{segment_.base() + first * segment_.stride() + allocator_.control_bytes(), segment_.stride(), tested,
                me() - first, 0};
  if (allocator_.left(MemoryKind::kData) < bytes) return;  // a heap for signals alone
  const Size counter_bytes = 2 * tested * Size{sizeof(std::uint32_t)};
  const std::unique_ptr<std::uint32_t[], PinnedFree> wrong(
      static_cast<std::uint32_t*>(devices().allocate_pinned(counter_bytes)), PinnedFree{&devices()});
  std::memset(wrong.get(), 0, static_cast<std::size_t>(counter_bytes));
  devices().memory().commit(segment_.base() + me() * segment_.stride() + allocator_.control_bytes(), bytes);
  for (test.round = 0; test.round < 2; ++test.round) {
    pe_.stream->write_patterns(test);
    pe_.stream->synchronize();
    member_.barrier("self-test written");
    pe_.stream->read_patterns(test, wrong.get());
    pe_.stream->synchronize();
    member_.barrier("self-test read");
  }
  for (int pe = 0; pe < tested; ++pe)
    for (const bool is_here : {true, false})
      if (const std::uint32_t count = wrong[pe + (is_here ? 0 : tested)])
        throw RuntimeFailure(fmt::format(
            "self-test: {} of {} words {} PE {} {} PE {} are wrong; the link or its driver is faulty", count,
            2 * kSelfTestWords, is_here ? "written by" : "read from", first + pe, is_here ? "to" : "by", me()));
}

}  // namespace tandem::world
