#include "wire/fabric/sleep.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "bootstrap/protocol/socket.h"

namespace tandem::wire {

Sleep::Sleep() : woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!woken_) bootstrap::throw_errno("eventfd");
}

void Sleep::wait(std::initializer_list<int> descriptors, int ms) {
  std::array<pollfd, 3> polled{{{woken_.get(), POLLIN, 0}}};
  nfds_t count = 1;
  for (const int descriptor : descriptors) {
    if (descriptor < 0) return;
    polled.at(count++) = {descriptor, POLLIN, 0};
  }
  Rest before = Rest::kNone;
  if (!rest_.compare_exchange_strong(before, Rest::kAsleep)) {
    rest_.exchange(Rest::kNone);
    return;
  }
  if (::poll(polled.data(), count, ms) < 0 && errno != EINTR) bootstrap::throw_errno("poll");
  std::uint64_t number = 0;
  if (rest_.exchange(Rest::kNone) == Rest::kWoken || polled[0].revents != 0)
    static_cast<void>(!::read(woken_.get(), &number, sizeof number));
}

void Sleep::wake() {
  if (rest_.exchange(Rest::kWoken) != Rest::kAsleep) return;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(woken_.get(), &one, sizeof one));
}

}  // namespace tandem::wire
