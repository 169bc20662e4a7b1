// One process of a world, for the tests of the rendezvous: what it is asked for is its first argument. Prints what went
// wrong; exit code 1 then.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "bootstrap/rendezvous/id_contents.h"
#include "bootstrap/rendezvous/split.h"
#include "bootstrap/share.h"
#include "bootstrap/timeout.h"
#include "runtime/mismatch_detector.h"
#include "tandem/advanced/placement.h"
#include "tandem/error.h"

namespace tandem::bootstrap::testing {
namespace {

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

/// All, then those with even and those with odd numbers at the same time.
void share_all(WorldMember& member) {
  FdExchange exchange(member);
  share(member, exchange, member.world());
  const int parity = member.pe() % 2;
  const Team half{parity, 2, (member.size() - parity + 1) / 2, member.pe() / 2, 1};
  share(member, exchange, half);
  share(member, exchange, member.world());
}

void join_and_share(const std::string& id, int pe, int size, double timeout_s) {
  WorldMember member(UniqueId::from_text(id), pe, size, timeout_s);
  share_all(member);
}

/// PE 1 is killed; the others know at once, and make a new world.
void lose_a_peer(const std::string& id, int pe, int size, const std::string& next_id) {
  {
    WorldMember member(UniqueId::from_text(id), pe, size, kTimeout);
    FdExchange exchange(member);
    share(member, exchange, member.world());
    if (pe == 1) std::raise(SIGKILL);
    try {
      member.barrier("no member gets through");
      expect(false, "an error");
    } catch (const std::runtime_error& error) {
      expect(std::string(error.what()).rfind("PE 1 is gone: ", 0) == 0,
             std::string("PE 1 is gone, not: ") + error.what());
    }
  }
  join_and_share(next_id, pe > 1 ? pe - 1 : pe, size - 1, kTimeout);
}

std::size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator begin(folder);
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

std::size_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:tandem") != std::string::npos ? 1 : 0;
  return count;
}

void share_from_environment(double timeout_s = kTimeout) {
  const Placement place = placement_from_environment(timeout_s);
  WorldMember member(place.id, place.pe, place.pes, kTimeout);
  share_all(member);
}

/// As many descriptors, threads and mappings after many worlds as after the first two.
void share_again_and_again(int times) {
  for (int i = 0; i < 2; ++i) share_from_environment();
  const std::size_t fds = entries_of("/proc/self/fd");
  for (int i = 0; i < times; ++i) share_from_environment();
  expect(entries_of("/proc/self/fd") <= fds + 4, "no leaked descriptors");
  expect(entries_of("/proc/self/task") <= 6, "no leaked threads");
  expect(shared_mappings() == 0, "no leaked mappings");
}

/// Two worlds of the same processes at once, in which they have other numbers.
void two_worlds(const std::string& id, int pe, int size, const std::string& other_id) {
  WorldMember first(UniqueId::from_text(id), pe, size, kTimeout);
  WorldMember second(UniqueId::from_text(other_id), size - 1 - pe, size, kTimeout);
  FdExchange first_exchange(first);
  FdExchange second_exchange(second);
  for (int i = 0; i < 3; ++i) {
    share(second, second_exchange, second.world());
    share(first, first_exchange, first.world());
  }
}

/// All note the same calls of two plans, and then the last PE another one: all get an error that names both.
void call_differently(const std::string& id, int pe, int size) {
  WorldMember member(UniqueId::from_text(id), pe, size, kTimeout);
  FdExchange exchange(member);
  const SharedMemory memory(exchange, member.world(), 2 * sizeof(PlanCalls));
  MismatchDetector log(
      pe, [&](int other, std::size_t plan) { return reinterpret_cast<PlanCalls*>(memory.on(other)) + plan; },
      [&](const std::string& text) {
        member.fail({FailureKind::kInvalidArgument, text});
      });
  for (const char* const what : {"all_reduce", "broadcast"}) log.add(what, member.world());
  for (Size call = 0; call < 1000; ++call)
    for (const std::size_t plan : {0, 1}) log.note(plan, call);
  try {
    log.note(1, pe == size - 1 ? 7 : 8);
    member.barrier("no member gets through");
    expect(false, "an error");
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    for (const char* const part : {"call 1001 of a plan", "broadcast with count 7", "broadcast with count 8"})
      expect(text.find(part) != std::string::npos, std::string(part) + ", not: " + text);
  }
}

/// Splits three times: even and odd numbers in reverse order, all but PE 0, and each PE by itself. The new worlds work
/// beside the old one.
void split_and_share(const std::string& id, int pe, int size) {
  WorldMember member(UniqueId::from_text(id), pe, size, kTimeout);
  const auto check = [&](int color, int key, int expected_pe, int expected_size) {
    const auto place = split(member, color, key);
    expect(place.has_value() == (color >= 0), "a world where the color is not negative");
    if (place) {
      expect(contents_of(place->id).address == contents_of(UniqueId::from_text(id)).address, "the world's address");
      expect(place->pe == expected_pe && place->pes == expected_size, "other numbers");
      WorldMember part(place->id, place->pe, place->pes, kTimeout);
      FdExchange exchange(part);
      share(part, exchange, part.world());
    }
    member.barrier("split");
  };
  const int alike = (size - pe % 2 + 1) / 2;
  check(pe % 2, -pe, alike - 1 - pe / 2, alike);
  check(pe == 0 ? -1 : 7, 0, pe - 1, size - 1);
  check(pe, 5, 0, 1);
}

std::string text_of_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

void expect_part(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, part + ", not: " + text);
}

/// PE 0 cannot open a rendezvous: all learn that at once, PE 1 closes its own again, and the world goes on.
void split_without_descriptors(const std::string& id, int pe, int size) {
  WorldMember member(UniqueId::from_text(id), pe, size, kTimeout);
  text_of_error([] { UniqueId::create("192.0.2.1"); });  // sanitizers need descriptors for the first error of a kind
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};  // input, output and errors; poll takes as many, too
  const std::size_t threads = entries_of("/proc/self/task");
  if (pe == 0) ::setrlimit(RLIMIT_NOFILE, &none);
  const std::string error = text_of_error([&] { split(member, pe % 2, 0); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  expect_part(error, "PE 0: ");
  expect_part(error, "Too many open files");
  expect(entries_of("/proc/self/task") <= threads, "no leaked thread of a rendezvous");
  expect(split(member, 0, 0)->pes == size, "a world of all");
}

/// The host's poll takes fewer descriptors than it has connections: all members learn why their world is over.
void lose_the_host() {
  constexpr int size = 12;
  constexpr int limit = 10;
  // Low numbers are free again under the limit: sanitizers need a few descriptors.
  std::vector<Fd> low(limit);
  for (Fd& fd : low) fd = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueId id = UniqueId::create();
  std::vector<std::unique_ptr<WorldMember>> members(size);
  const auto on_all = [&](const std::function<void(int)>& work) {
    std::vector<std::thread> threads;
    threads.reserve(size);
    for (int pe = 0; pe < size; ++pe) threads.emplace_back(work, pe);
    for (std::thread& thread : threads) thread.join();
  };
  on_all(
      [&](int pe) { members[static_cast<std::size_t>(pe)] = std::make_unique<WorldMember>(id, pe, size, kTimeout); });
  low.clear();
  const rlimit few{limit, limit};
  ::setrlimit(RLIMIT_NOFILE, &few);
  std::vector<std::string> errors(size);
  on_all([&](int pe) {
    errors[static_cast<std::size_t>(pe)] = text_of_error([&] {
      for (;;) members[static_cast<std::size_t>(pe)]->barrier("no member gets through");
    });
  });
  for (const std::string& error : errors) expect_part(error, "the rendezvous failed: poll: Invalid argument");
}

/// A rendezvous that has no descriptor for another connection sleeps, and goes on once there is one.
void fill_descriptors() {
  const UniqueId id = UniqueId::create();
  const IdContents contents = contents_of(id);
  const rlimit few{40, 40};
  ::setrlimit(RLIMIT_NOFILE, &few);
  std::vector<Fd> held;
  do held.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  while (held.back());
  held.pop_back();
  held.back().reset();  // room for one end of a connection
  const Fd waiting = connect_tcp(contents.address, contents.port, Deadline(kTimeout));
  const std::clock_t before = std::clock();  // the time of the processor that this process has used
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  expect(std::clock() - before < CLOCKS_PER_SEC / 50, "a rendezvous that sleeps while it is full");
  held.clear();
  WorldMember member(id, 0, 1, kTimeout);
}

void become_another_user() {
  constexpr uid_t nobody = 65534;
  if (::setresuid(nobody, nobody, nobody) != 0) throw std::runtime_error("cannot become another user");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // another user loses it
}

/// Another user's connections to a rendezvous, over which nothing is sent.
void hold_connections(const std::string& id, int count) {
  const IdContents contents = contents_of(UniqueId::from_text(id));
  become_another_user();
  std::vector<Fd> held;
  for (int i = 0; i < count; ++i) {
    held.push_back(connect_tcp(contents.address, contents.port, Deadline(kTimeout)));
    held.push_back(connect_local(local_name(contents), SOCK_STREAM));
  }
  std::cout << "held" << std::endl;
  ::pause();
}

/// Another user's process under these names.
void hold_names(char** begin, char** end) {
  become_another_user();
  std::vector<Fd> held;
  for (char** name = begin; name != end; ++name) held.push_back(listen_local(*name, SOCK_STREAM));
  std::cout << "held" << std::endl;
  ::pause();
}

void meet_as_another_user(const std::string& id, int pe, int size) {
  become_another_user();
  WorldMember member(UniqueId::from_text(id), pe, size, kTimeout);
  member.barrier("another user's barrier");
}

/// A child of fork that ends by exit() does not touch the parent's rendezvous and session.
void fork_and_share() {
  static std::unique_ptr<WorldMember> member;
  const auto child = [] {
    const pid_t pid = ::fork();
    if (pid == 0) std::exit(0);
    int status = -1;
    ::waitpid(pid, &status, 0);
    expect(status == 0, "a child that ends well, not with status " + std::to_string(status));
  };
  const Placement place = placement_from_environment(kTimeout);
  if (place.pe == 0) {
    child();
    const std::clock_t before = std::clock();  // the time of the processor that this process has used
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    expect(std::clock() - before < CLOCKS_PER_SEC / 10, "a rendezvous that sleeps while no process arrives");
    std::cout << "forked" << std::endl;
  }
  member = std::make_unique<WorldMember>(place.id, place.pe, place.pes, kTimeout);
  child();
  member->barrier("forked again");
  member.reset();
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto text = [&](int i) { return std::string(argc > i ? argv[i] : ""); };
  const auto number = [&](int i) { return std::atoi(text(i).c_str()); };
  try {
    if (what == "share")
      join_and_share(text(2), number(3), number(4), argc > 5 ? number(5) * 1e-3 : kTimeout);
    else if (what == "lose")
      lose_a_peer(text(2), number(3), number(4), text(5));
    else if (what == "two")
      two_worlds(text(2), number(3), number(4), text(5));
    else if (what == "calls")
      call_differently(text(2), number(3), number(4));
    else if (what == "split")
      split_and_share(text(2), number(3), number(4));
    else if (what == "split without descriptors")
      split_without_descriptors(text(2), number(3), number(4));
    else if (what == "host fails")
      lose_the_host();
    else if (what == "full")
      fill_descriptors();
    else if (what == "fork")
      fork_and_share();
    else if (what == "environment")
      share_from_environment(argc > 2 ? number(2) * 1e-3 : kTimeout);
    else if (what == "idle")
      hold_connections(text(2), number(3));
    else if (what == "squat")
      hold_names(argv + 2, argv + argc);
    else if (what == "foreign barrier")
      meet_as_another_user(text(2), number(3), number(4));
    else if (what == "again")
      share_again_and_again(number(2));
    else
      return 2;
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tandem::bootstrap::testing

int main(int argc, char** argv) { return tandem::bootstrap::testing::run(argc, argv); }
