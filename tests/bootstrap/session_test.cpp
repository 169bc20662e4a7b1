// Work that all PEs of a world do, and that fails on one of them.
#include "bootstrap/session.h"

#include <gmock/gmock.h>

#include <functional>

#include "tandem/error.h"

namespace tandem::bootstrap {
namespace {

constexpr double kTimeout = 600;  // for what would never come

/// A world whose PEs are threads; what each one's `work` throws, as "kind: text".
std::vector<std::string> errors_of(int size, const std::function<void(Session&)>& work) {
  const UniqueId id = UniqueId::create();
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int pe = 0; pe < size; ++pe)
    threads.emplace_back([&, pe] {
      std::string& error = errors[static_cast<std::size_t>(pe)];
      try {
        Session session(id, pe, size, kTimeout);
        work(session);
      } catch (const OutOfMemory& out_of_memory) {
        error = std::string("OutOfMemory: ") + out_of_memory.what();
      } catch (const Unsupported& unsupported) {
        error = std::string("Unsupported: ") + unsupported.what();
      } catch (const std::exception& other) {
        error = std::string("other: ") + other.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(SessionTest, WhatFailsOnOnePeFailsOnAllAndTheWorldGoesOn) {
  const auto errors = errors_of(3, [](Session& session) {
    session.together("nothing", [] {});
    try {
      session.together("something", [&] {
        if (session.pe() == 1) throw OutOfMemory("none left");
      });
      throw std::runtime_error("no error");
    } catch (const OutOfMemory&) {
      session.barrier("afterwards");
      throw;
    }
  });
  EXPECT_THAT(errors, ::testing::Each("OutOfMemory: PE 1: none left"));
}

TEST(SessionTest, OfSeveralErrorsAllPesThrowTheFirst) {
  const auto errors = errors_of(3, [](Session& session) {
    session.together("something", [&] {
      if (session.pe() == 1) throw Unsupported("not this");
      if (session.pe() == 2) throw OutOfMemory("none left");
    });
  });
  EXPECT_THAT(errors, ::testing::Each("Unsupported: PE 1: not this"));
}

TEST(SessionTest, WhoCannotMakeAWorldTellsWhy) {
  const auto errors = errors_of(3, [](Session& session) {
    session.or_fail([&] {
      if (session.pe() == 2) throw OutOfMemory("none left");
    });
    session.barrier("the others wait");
  });
  EXPECT_EQ(errors[0], "OutOfMemory: PE 2: none left");
  EXPECT_EQ(errors[1], "OutOfMemory: PE 2: none left");
  EXPECT_EQ(errors[2], "OutOfMemory: none left");
}

}  // namespace
}  // namespace tandem::bootstrap
