// Puts with a signal between two processes over libfabric on loopback, beside a plain socket. Variants take turns.
//
//   wire [PROVIDER...]      providers of libfabric, by default tcp. With +read behind it the proxy reads the data of
//                           short puts too, which requests else hold. With +100 the proxy looks for work for 100 us
//                           before it sleeps
//
// For each size it prints half a round trip and the time until the source of a put may change. Then follows the rate of
// puts in a row. The puts' processor time and sleeps of threads count both processes. A busy machine scatters times of
// day much more than times of processors.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tandem/error.h"
#include "wire/fabric/fabric.h"
#include "wire/proxy/proxy.h"

namespace tandem::wire {
namespace {

constexpr Size kMost = Size{1} << 20;
constexpr Size kWord = kMost;
constexpr Size kPart = kMost + 4096;

void check(bool is_good, const char* call) {
  if (!is_good) throw RuntimeFailure(fmt::format("{}: {}", call, std::strerror(errno)));
}

void write_all(int fd, const void* from, Size bytes) {
  for (Size done = 0; done < bytes;) {
    const ssize_t now = ::write(fd, static_cast<const char*>(from) + done, static_cast<std::size_t>(bytes - done));
    check(now > 0, "write");
    done += now;
  }
}

void read_all(int fd, void* to, Size bytes) {
  for (Size done = 0; done < bytes;) {
    const ssize_t now = ::read(fd, static_cast<char*>(to) + done, static_cast<std::size_t>(bytes - done));
    check(now > 0, "read");
    done += now;
  }
}

/// One end of a connection.
class End {
 public:
  virtual ~End() = default;
  virtual void send(Size bytes) = 0;
  /// Waits until the source of the last message may change.
  virtual void await_source() {}
  /// Waits for the next message, which has so many bytes.
  virtual void receive(Size bytes) = 0;
  /// Waits until all messages so far have arrived.
  virtual void settle() {}
};

class SocketEnd final : public End {
 public:
  explicit SocketEnd(int fd) : fd_(fd), bytes_(static_cast<std::size_t>(kMost)) {}
  void send(Size bytes) override { write_all(fd_, bytes_.data(), bytes); }
  void receive(Size bytes) override { read_all(fd_, bytes_.data(), bytes); }

 private:
  int fd_;
  Bytes bytes_;
};

class ProxyEnd final : public End {
 public:
  ProxyEnd(int me, int channel, const std::string& provider, bool holds_data, int search_us)
      : me_(me), holds_data_(holds_data), memory_(static_cast<std::size_t>(2 * kPart)) {
    ::setenv("TANDEM_FABRIC", provider.c_str(), 1);
    auto endpoint = make_fabric_endpoint("127.0.0.1", std::chrono::microseconds(search_us));
    Bytes address = endpoint->address();
    address.resize(256);
    write_all(channel, address.data(), 256);
    std::vector<Bytes> addresses(2);
    auto& its = addresses[static_cast<std::size_t>(1 - me)];
    its.resize(256);
    read_all(channel, its.data(), 256);
    endpoint->connect(addresses);
    ProxySetup setup;
    setup.place = {memory_.data(), kPart, 2, me, 1};
    setup.access = std::make_shared<HostAccess>(setup.place);
    setup.ring = [this] {
      ++rung_;
      rung_.notify_all();
    };
    setup.search = std::chrono::microseconds(search_us);
    setup.is_over = [] { return false; };
    setup.on_error = [](const std::exception_ptr& error) { std::rethrow_exception(error); };
    proxy_ = std::make_unique<Proxy>(std::move(setup), std::move(endpoint), kPart);
  }
  void send(Size bytes) override {
    Request request;
    request.pe = 1 - me_;
    request.local = memory_.data() + (1 - me_) * kPart;
    request.bytes = bytes;
    request.has_word = true;
    request.word = kWord;
    request.value = ++sent_;
    if (holds_data_ && bytes <= kMostHeld) request.hold(request.local);
    is_held_ = request.holds_data;
    while ((posted_ = proxy_->mailbox().try_post(request)) == 0) ::usleep(50);
  }
  void await_source() override {
    if (is_held_) return;
    for (std::uint32_t before = rung_; !proxy_->mailbox().is_sent(posted_); before = rung_) rung_.wait(before);
  }
  void settle() override { proxy_->settle(); }
  void receive(Size) override {
    ++received_;
    const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(memory_.data() + me_ * kPart + kWord));
    for (std::uint32_t before = rung_; word.load() < received_; before = rung_) rung_.wait(before);
  }

 private:
  int me_;
  bool holds_data_;
  Bytes memory_;
  std::uint64_t sent_ = 0, received_ = 0, posted_ = 0;
  bool is_held_ = false;
  std::atomic<std::uint32_t> rung_{0};
  std::unique_ptr<Proxy> proxy_;
};

struct Use {
  double cpu_us = 0;
  double sleeps = 0;
};

Use use_so_far() {
  rusage all{};
  ::getrusage(RUSAGE_SELF, &all);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return {us(all.ru_utime) + us(all.ru_stime), static_cast<double>(all.ru_nvcsw)};
}

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// The figures of one size: microseconds of half a round trip, until a source may change, and of each put in a row. The
/// use is that of the latter.
struct Row {
  double half_us = 0, source_us = 0, put_us = 0;
  Use use;
};

constexpr int kTrips = 200;

/// Returns the median time of an action.
template <class Act>
double median_us(const Act& act) {
  for (int i = 0; i < 20; ++i) act();
  std::vector<double> times;
  times.reserve(kTrips);
  for (int i = 0; i < kTrips; ++i) times.push_back(act());
  std::nth_element(times.begin(), times.begin() + kTrips / 2, times.end());
  return times[kTrips / 2];
}

Row measure(End& end, int me, Size bytes) {
  const int puts = static_cast<int>(std::clamp(Size{256} * kMost / 4 / bytes, Size{64}, Size{4000}));
  Row row;
  row.half_us = median_us([&] {
    const auto begin = std::chrono::steady_clock::now();
    if (me == 0) end.send(bytes);
    end.receive(bytes);
    if (me == 1) end.send(bytes);
    return since(begin) / 2;
  });
  row.source_us = median_us([&] {
    if (me == 1) end.receive(bytes);
    const auto begin = std::chrono::steady_clock::now();
    end.send(bytes);
    end.await_source();
    const double time = since(begin);
    if (me == 0) end.receive(bytes);
    return time;
  });
  const Use before = use_so_far();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < puts; ++i) me == 0 ? end.send(bytes) : end.receive(bytes);
  me == 0 ? end.receive(8) : end.send(8);
  row.put_us = since(begin) / puts;
  const Use after = use_so_far();
  row.use = {(after.cpu_us - before.cpu_us) / puts, (after.sleeps - before.sleeps) / puts};
  return row;
}

constexpr Size kSizes[] = {8, 1024, Size{64} << 10, kMost};
using Rows = std::array<Row, std::size(kSizes)>;

std::unique_ptr<End> make_end(int me, int channel, const std::string& variant) {
  if (variant == "socket") return std::make_unique<SocketEnd>(channel);
  const std::size_t plus = variant.find('+');
  const std::string form = plus == std::string::npos ? "" : variant.substr(plus + 1);
  return std::make_unique<ProxyEnd>(me, channel, variant.substr(0, plus), form != "read", std::atoi(form.c_str()));
}

void run_end(int me, int channel, const std::string& variant) {
  const std::unique_ptr<End> end = make_end(me, channel, variant);
  Rows rows;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = measure(*end, me, kSizes[i]);
  if (me == 1) end->settle();  // this process ends first
  if (me == 1) return write_all(channel, rows.data(), sizeof rows);
  Rows its;
  read_all(channel, its.data(), sizeof its);
  for (std::size_t i = 0; i < rows.size(); ++i)
    fmt::print("{:<14} {:>8} {:>10.1f} {:>11.1f} {:>8.3f} {:>10.1f} {:>8.2f}\n", variant, kSizes[i], rows[i].half_us,
               rows[i].source_us, static_cast<double>(kSizes[i]) / rows[i].put_us / 1e3,
               rows[i].use.cpu_us + its[i].use.cpu_us, rows[i].use.sleeps + its[i].use.sleeps);
  std::fflush(stdout);
}

/// Returns the two ends of a TCP connection.
std::array<int, 2> connect_pair() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  check(::bind(listener, reinterpret_cast<sockaddr*>(&at), bytes) == 0 && ::listen(listener, 1) == 0, "listen");
  check(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &bytes) == 0, "getsockname");
  const int first = ::socket(AF_INET, SOCK_STREAM, 0);
  check(::connect(first, reinterpret_cast<sockaddr*>(&at), bytes) == 0, "connect");
  const int second = ::accept(listener, nullptr, nullptr);
  check(second >= 0, "accept");
  ::close(listener);
  const int one = 1;
  for (const int fd : {first, second}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return {first, second};
}

void run(const std::string& variant) {
  const auto ends = connect_pair();
  for (int me = 0; me < 2; ++me) {
    if (::fork() != 0) continue;
    run_end(me, ends[static_cast<std::size_t>(me)], variant);
    ::_exit(0);
  }
  for (const int fd : ends) ::close(fd);
  while (::wait(nullptr) > 0) {
  }
}

}  // namespace
}  // namespace tandem::wire

int main(int count, char** values) {
  std::vector<std::string> variants(values + 1, values + count);
  if (variants.empty()) variants.emplace_back("tcp");
  variants.insert(variants.begin(), "socket");
  fmt::print("{:<14} {:>8} {:>10} {:>11} {:>8} {:>10} {:>8}\n", "variant", "bytes", "half (us)", "source (us)", "GB/s",
             "CPU us/put", "sleeps");
  std::fflush(stdout);
  for (int round = 0; round < 3; ++round)
    for (const std::string& variant : variants) tandem::wire::run(variant);
}
