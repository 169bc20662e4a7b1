// Programs of PEs on several hosts, of which one fails. The survivors make a new world.
#include <signal.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "tandem/advanced/unique_id.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "world/peer.h"

namespace tandem::test {

namespace {

/// The time since something happened. Limits leave room for a busy machine.
class Since {
 public:
  void expect_less(double seconds) const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
    expect(passed.count() < seconds, std::to_string(seconds) + " s at most, not " + std::to_string(passed.count()));
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};
constexpr double kAtOnce = 15;           // seconds; the world itself promises one
constexpr double kAfterHeartbeats = 30;  // likewise five

/// The id of a later world. PE `from` opens its rendezvous, and hands it to the others through the heap.
UniqueId share_id(World& world, int from, const std::string& address = "127.0.0.1") {
  const Symm<std::byte> place = world.heap().allocate<std::byte>(UniqueId::kBytes, "id");
  if (world.pe() == from) {
    const UniqueId id = UniqueId::create(address);
    for (int pe = 0; pe < world.num_pes(); ++pe)
      world.copy_in(place.on(pe), id.bytes().data(), static_cast<Size>(UniqueId::kBytes));
  }
  world.barrier();
  return UniqueId::from_bytes({place.local(), UniqueId::kBytes});
}

/// The address of the first host, as the other reaches it.
std::string first_address() {
  const char* const address = std::getenv("TANDEM_TEST_ADDRESS");
  return address == nullptr ? "127.0.0.1" : address;
}

void check_world(const UniqueId& id, int pe, int pes) {
  WorldProcess process(id, pe, pes, options());
  check_all_reduce(process.world());
}

void expect_part(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, part + ", not: " + text);
}

/// PE 1 is stopped until PE 0 has lost it. Both get an error with its name and host, and make a new world.
void lose_a_stopped_pe(const PeerPlace& place) {
  UniqueId again = place.id;
  {
    WorldProcess process(place.id, place.pe, place.pes, options());
    check_all_reduce(process.world());
    again = share_id(process.world(), 0);
    const Since since;
    if (place.pe == 1) ::raise(SIGSTOP);
    expect_part(end_of(process), "PE 1 (host b) not heard for 3 s");
    if (place.pe == 0) {
      since.expect_less(kAfterHeartbeats);
      std::cout << "lost" << std::endl;
    }
  }
  check_world(again, place.pe, place.pes);
}

/// PE 3 is killed, while all call. PE 0 and 2 make a new world.
void lose_a_killed_pe(const PeerPlace& place) {
  UniqueId again = place.id;
  {
    WorldProcess process(place.id, place.pe, place.pes, options());
    World& world = process.world();
    check_all_reduce(world);
    again = share_id(world, 0, first_address());
    const Since since;
    if (place.pe == 3) ::raise(SIGKILL);
    expect_error<RuntimeFailure>("PE 3 (host b) is gone", [&] { reduce_to_the_end(world, world.team()); });
    since.expect_less(kAtOnce);
  }
  if (place.pe != 1) check_world(again, place.pe / 2, 2);
}

/// Waits until this host's link is up.
void wait_for_route() {
  const auto has_route = [] {
    std::ifstream table("/proc/self/net/route");
    std::string line;
    return std::getline(table, line) && std::getline(table, line);
  };
  for (int i = 0; i < 6000 && !has_route(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

/// The link between two hosts of two PEs is cut, during calls on PE 0 and 2, between calls on the others. All learn
/// which PEs are lost. Each host makes a world of its own. Once the link is up again, so do all.
void lose_the_other_host(const PeerPlace& place) {
  const int host = place.pe / 2;
  UniqueId all = place.id, own = place.id;
  {
    WorldProcess process(place.id, place.pe, place.pes, options());
    World& world = process.world();
    check_all_reduce(world);
    const std::array<UniqueId, 2> of_hosts{share_id(world, 0), share_id(world, 2)};
    own = of_hosts[static_cast<std::size_t>(host)];
    all = share_id(world, 0, first_address());
    const Since since;
    const Team rail = world.rail_team();
    std::cout << "ready" << std::endl;
    const std::string part =
        std::string(host == 0 ? "PE 2 (host b), PE 3 (host b)" : "PE 0 (host a), PE 1 (host a)") + " not heard for 3 s";
    if (place.pe % 2 == 0) expect_error<RuntimeFailure>(part, [&] { reduce_to_the_end(world, rail); });
    expect_part(end_of(process), part);
    since.expect_less(kAfterHeartbeats);
  }
  check_world(own, place.pe % 2, 2);
  std::cout << "alive" << std::endl;
  wait_for_route();
  check_world(all, place.pe, place.pes);
}

/// The processes of the first host are killed, and the rendezvous with them.
void outlive_the_rendezvous(const PeerPlace& place) {
  UniqueId own = place.id;
  {
    WorldProcess process(place.id, place.pe, place.pes, options());
    check_all_reduce(process.world());
    own = share_id(process.world(), 2);
    const Since since;
    std::cout << "ready" << std::endl;
    const std::string end = end_of(process);  // the first host never gets there
    expect(end.find("the process that holds the rendezvous is gone") != std::string::npos ||
               end.find("(host a)") != std::string::npos,
           "the host that is gone, not: " + end);
    since.expect_less(kAtOnce);
  }
  check_world(own, place.pe - 2, 2);
}

/// PE 1 makes another call than the others. That ends the world, at the latest some heartbeats later, with a text that
/// has all `parts`. By then data of both calls may have arrived. Each PE's values have a place of their own in
/// `ring_simple`, so no two threads write to one.
void call_otherwise(const PeerPlace& place, const std::array<CollectiveOptions, 2>& plans, std::array<Size, 2> counts,
                    const std::vector<std::string>& parts) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  World& world = process.world();
  const Symm<float> data = world.heap().allocate<float>(1000, "data");
  Stream stream = world.make_stream("main");
  const std::size_t which = place.pe == 1 ? 1 : 0;
  const auto run = [&](CollectivePlan& plan, Size count) {
    plan.run(stream, data.as<std::byte>(), data.as<std::byte>(), count);
  };
  const Since since;
  try {
    const auto first = make_collective(world, Collective::kAllReduce, plans[which]);
    const auto second = make_collective(world, Collective::kAllReduce, plans[1 - which]);
    for (int i = 0; i < 3; ++i) run(*first, 1000);
    run(*first, counts[which]);
    stream.synchronize();
  } catch (const InvalidArgument&) {
  }
  const std::string end = end_of(process);
  since.expect_less(kAtOnce);
  for (const std::string& part : parts) expect_part(end, part);
  expect_error<InvalidArgument>(end, [&] { process.check(); });
}

void differ_between_hosts(const PeerPlace& place) {
  const CollectiveOptions same{.max_count = 1000, .algorithm = "ring_simple"};
  call_otherwise(place, {same, same}, {1000, 500}, {"call 4 of a plan", "with count 500", "with count 1000"});
}

/// PE 1 makes two plans in the other order, and so calls another operation.
void differ_in_order(const PeerPlace& place) {
  CollectiveOptions sum{.max_count = 1000, .algorithm = "ring_simple"};
  CollectiveOptions max = sum;
  max.op = ReduceOp::kMax;
  call_otherwise(place, {sum, max}, {1000, 1000}, {"PE 1 ", "ring_simple f32 max", "ring_simple f32 sum"});
}

/// Likewise another collective.
void differ_in_collective(const PeerPlace& place) {
  WorldProcess process(place.id, place.pe, place.pes, options());
  const Since since;
  try {
    make_collective(process.world(), place.pe == 1 ? Collective::kAllGather : Collective::kReduceScatter,
                    {.max_count = 1000, .algorithm = "ring"});
  } catch (const InvalidArgument& error) {
    since.expect_less(kAtOnce);
    expect_part(error.what(), "reduce_scatter ring");
    return expect_part(error.what(), "all_gather ring");
  }
  expect(false, "an error");
}

}  // namespace

const Programs& programs_that_lose_hosts() {
  static const Programs all{
      {"lose_a_stopped_pe", lose_a_stopped_pe},       {"lose_a_killed_pe", lose_a_killed_pe},
      {"lose_the_other_host", lose_the_other_host},   {"outlive_the_rendezvous", outlive_the_rendezvous},
      {"differ_between_hosts", differ_between_hosts}, {"differ_in_order", differ_in_order},
      {"differ_in_collective", differ_in_collective},
  };
  return all;
}

}  // namespace tandem::test
