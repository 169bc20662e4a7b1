// Programs of PEs on several hosts.
#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>

#include "bootstrap/protocol/socket.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/operators.h"
#include "world/cases.h"
#include "world/peer.h"

namespace tandem::test {

namespace {

/// The engine's libraries change no signal handler of the program.
void keep_handlers(const PeerPlace& place) {
  const auto handlers = [] {
    std::array<void (*)(int), 32> all{};
    for (int signal = 1; signal < 32; ++signal) {
      struct sigaction handler {};
      ::sigaction(signal, nullptr, &handler);
      all[static_cast<std::size_t>(signal)] = handler.sa_handler;
    }
    return all;
  };
  const auto before = handlers();  // a sanitizer has some of its own
  WorldProcess process(place.id, place.pe, place.pes, options());
  const auto after = handlers();
  for (std::size_t i = 0; i < after.size(); ++i)
    expect(after[i] == before[i], "no handler of signal " + std::to_string(i));
  // The host program writes to the next PE, wherever that is.
  World& world = process.world();
  const Symm<int> word = world.heap().allocate<int>(1, "word");
  const int own = place.pe + 1;
  world.copy_in(word.on((place.pe + 1) % place.pes), &own, Size{sizeof own});
  world.barrier();
  expect(*word.local() == (place.pe + place.pes - 1) % place.pes + 1, "the word of the PE before");
}

constexpr Size kSent = 8 * kMiB;  // bytes of a PE, in one call

void send_much_by_collective(World& world, Collective collective, const std::string& algorithm) {
  const auto in = world.heap().allocate<std::byte>(world.num_pes() * kSent, "in");
  const auto out = world.heap().allocate<std::byte>(world.num_pes() * kSent, "out");
  std::fill_n(reinterpret_cast<std::int32_t*>(in.local()), world.num_pes() * kSent / 4, world.pe() + 1);
  const Size count = kSent / 4;
  const auto plan =
      make_collective(world, collective, {.type = DType::kI32, .max_count = count, .algorithm = algorithm});
  Stream stream = world.make_stream("main");
  for (int i = 0; i < 2; ++i) plan->run(stream, in, out, count);
  stream.synchronize();
  const int sum = world.num_pes() * (world.num_pes() + 1) / 2;
  const auto* const got = reinterpret_cast<const std::int32_t*>(out.local());
  for (int pe = 0; pe < world.num_pes(); ++pe) {
    const bool gathers = !reduces(collective);
    expect(got[gathers ? (pe + 1) * count - 1 : count - 1 - pe] == (gathers ? pe + 1 : sum),
           algorithm + " to be right");
  }
}

/// The shard of A has kSent bytes.
void send_much_by_operator(World& world) {
  OperatorOptions options;
  options.type = DType::kBF16;
  options.n = 16 * world.num_pes();
  options.k = 1024;
  options.m = world.num_pes() * kSent / 2 / options.k;
  const auto plan = make_operator(world, Operator::kAllGatherGemm, options);
  const auto memory = [&](Size bytes, const char* name) { return world.heap().allocate_local<std::byte>(bytes, name); };
  std::byte* const a = memory(kSent, "a");
  std::byte* const b = memory(16 * options.k * 2, "b");
  std::byte* const c = memory(options.m * 16 * 2, "c");
  Stream stream = world.make_stream("main");
  for (int i = 0; i < 2; ++i) plan->run(stream, a, b, c);
  stream.synchronize();
}

/// Two calls that send much between hosts. The environment says which.
void send_much(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, host_options());
  const std::string call = std::getenv("TANDEM_TEST_CALL");
  const std::size_t space = call.find(' ');
  if (space == std::string::npos) return send_much_by_operator(process.world());
  send_much_by_collective(process.world(), parse_collective(call.substr(0, space)), call.substr(space + 1));
}

/// All-reduces until a link was cut and came back.
void reduce_again(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  check_all_reduce(process.world());
  process.world().barrier();
  std::cout << "ready" << std::endl;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  // All PEs make as many calls: those that PE 0 asks for.
  for (bool goes_on = true; goes_on;) {
    check_all_reduce(process.world(), 3000);
    const Symm<int> word = process.world().heap().allocate<int>(1, "word");
    const int more = std::chrono::steady_clock::now() < end ? 1 : 0;
    for (int pe = 0; pe < place.pes && place.pe == 0; ++pe)
      process.world().copy_in(word.on(pe), &more, Size{sizeof more});
    process.world().barrier();
    goes_on = *word.local() == 1;
  }
}

/// A call that takes a slow link seconds.
void reduce_slowly(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  check_all_reduce(process.world(), 40'000);
}

/// PEs of other hosts are never heard.
void be_cut_off(const PeerPlace& place) {
  expect_error<RuntimeFailure>("a firewall drops it, or the hosts do not reach each other's address",
                               [&] { WorldProcess(place.id, place.pe, place.pes, options()); });
}

/// The rendezvous listens at 127.0.0.1 of another host.
void miss_the_rendezvous(const PeerPlace& place) {
  expect_error<RuntimeFailure>("no process listens there any more; processes of several hosts need an address that all",
                               [&] { WorldProcess(place.id, place.pe, place.pes, options()); });
}

/// Worlds of the PEs of a rail, which are on several hosts, and of one PE each.
void split_between_hosts(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  const Team node = process.world().node_team();
  const auto rail = process.split(node.me, place.pe, options());
  expect(rail->pes() == place.pes / node.size && rail->world().team().node_size == 1, "a rail");
  check_all_reduce(rail->world());
  const auto own = process.split(place.pe, 0, options());
  expect(own->pes() == 1, "a world of one PE");
  check_all_reduce(own->world());
  check_all_reduce(process.world());
}

/// Returns the TCP ports on which this process listens.
std::set<std::uint16_t> own_ports() {
  std::set<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    sockets.insert(std::filesystem::read_symlink(entry, error));
  }
  std::set<std::uint16_t> ports;
  std::ifstream table("/proc/self/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    if (fields.size() > 9 && fields[3] == "0A" && sockets.count("socket:[" + fields[9] + "]") > 0)
      ports.insert(static_cast<std::uint16_t>(std::stoi(fields[1].substr(fields[1].find(':') + 1), nullptr, 16)));
  }
  return ports;
}

/// Strangers connect to the ports of a PE, send noise of several lengths, and stay or go: 10,000 for three PEs.
void meet_strangers(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  check_all_reduce(process.world());
  const std::set<std::uint16_t> ports = own_ports();
  expect(!ports.empty(), "a port of this process");
  std::vector<bootstrap::Fd> staying;
  std::mt19937 random(static_cast<unsigned>(place.pe));
  for (const std::uint16_t port : ports)
    for (std::size_t i = 0; i < 3400; ++i) {
      bootstrap::Fd stranger = bootstrap::connect_tcp("127.0.0.1", port, bootstrap::Deadline(60));
      std::vector<std::byte> noise((i % 100) * (i % 100));
      for (std::byte& byte : noise) byte = i % 3 == 0 ? std::byte{} : static_cast<std::byte>(random());
      static_cast<void>(::send(stranger.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
      if (i < 200 && i % 2 == 0) staying.push_back(std::move(stranger));
      if (i % 200 == 0) check_all_reduce(process.world());
    }
  check_all_reduce(process.world());
}

/// All connections are there, and no other one can be made.
void have_no_port(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  check_all_reduce(process.world());
  process.world().barrier();
  expect(own_ports().empty(), "no port of this process");
}

/// A world cannot be made. The environment holds a part of the error's text.
void be_refused(const PeerPlace& place) {
  const char* const text = std::getenv("TANDEM_TEST_ERROR");
  const auto make = [&] { WorldProcess(place.id, place.pe, place.pes, options()); };
  if (std::getenv("TANDEM_TEST_INVALID") != nullptr)
    expect_error<InvalidArgument>(text, make);
  else
    expect_error<Unsupported>(text, make);
}

/// A world of one host loads no engine.
void load_no_engine(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  check_all_reduce(process.world());
  expect(::dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD) == nullptr, "no libfabric in this process");
}

/// Memory of the user is refused between hosts, and the world goes on.
void register_between_hosts(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  std::array<std::byte, 64> memory{};
  expect_error<Unsupported>("a world of several hosts has no registered memory",
                            [&] { process.register_buffer(memory.data(), 64); });
  check_reach(process.world(), process.world().heap().allocate<std::byte>(64, "data"));
}

/// The heap grows, and peers reach the new memory.
void grow_between_hosts(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  for (int i = 0; i < 3; ++i)
    check_reach(process.world(), process.world().heap().allocate<std::byte>(6 * kMiB, "more"));
}

}  // namespace

const Programs& programs_between_hosts() {
  static const Programs all{
      {"keep_handlers", keep_handlers},
      {"split_between_hosts", split_between_hosts},
      {"send_much", send_much},
      {"reduce_again", reduce_again},
      {"reduce_slowly", reduce_slowly},
      {"be_cut_off", be_cut_off},
      {"miss_the_rendezvous", miss_the_rendezvous},
      {"have_no_port", have_no_port},
      {"meet_strangers", meet_strangers},
      {"be_refused", be_refused},
      {"load_no_engine", load_no_engine},
      {"register_between_hosts", register_between_hosts},
      {"grow_between_hosts", grow_between_hosts},
  };
  return all;
}

}  // namespace tandem::test
