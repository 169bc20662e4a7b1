#include "host/block_core.h"

#include <fmt/format.h>

#include <cstring>

#include "base/cpu/long_copy.h"
#include "host/bell.h"
#include "tandem/error.h"

namespace tandem::host {

namespace {

constexpr std::uint32_t kHoldersOfBlock = 16;  // the block itself, and its roles

void move_bytes(const char* operation, void* to, const void* from, Size bytes, Site site) {
  if (bytes < 0)
    throw InvalidArgument(
        fmt::format("{}:{}: {} of {} bytes, must not be negative", site.file, site.line, operation, bytes));
  if (bytes > 0) std::memmove(to, from, static_cast<std::size_t>(bytes));
}

/// Calls use(T{}) with the unsigned type of so many bytes.
template <class Use>
void with_word(Size bytes, const Use& use) {
  if (bytes == 1) return use(std::uint8_t{});
  if (bytes == 2) return use(std::uint16_t{});
  if (bytes == 4) return use(std::uint32_t{});
  use(std::uint64_t{});
}

template <class T>
std::uint64_t atomic_of(T* word, cpu::AtomicOp op, T operand, T expected, std::memory_order order) {
  const std::atomic_ref<T> at(*word);
  switch (op) {
    case cpu::AtomicOp::kAdd:
      return at.fetch_add(operand, order);
    case cpu::AtomicOp::kExchange:
      return at.exchange(operand, order);
    case cpu::AtomicOp::kCompareSwap:
      break;
  }
  at.compare_exchange_strong(expected, operand, order);
  return expected;
}

}  // namespace

BlockCore::BlockCore(Strand& strand, const GridShape& grid, int index, int warps, int role, FenceOrder* order)
    : cpu::BlockCore(grid.context.team, index, grid.blocks,
                     static_cast<std::uint32_t>(index) * kHoldersOfBlock + static_cast<std::uint32_t>(role) + 1, true),
      strand_(strand),
      grid_(grid),
      warps_(warps),
      role_(role),
      order_(order != nullptr ? *order : own_order_) {}

void BlockCore::require_word(const void* word, const char* operation, Site site) const {
  if (owner_of(grid_.context, word) < 0)
    throw InvalidArgument(fmt::format("{}:{}: {} to {}, which is no PE's memory: PEs are 0 to {}", site.file, site.line,
                                      operation, word, num_pes() - 1));
}

void BlockCore::require_near(const void* address, const char* operation, Site site) const {
  if (const auto spot = far_spot(address))
    throw InvalidArgument(fmt::format("{}:{}: {} at {}, which is on PE {} of another node: PE {} does not reach it",
                                      site.file, site.line, operation, address, spot->pe, team().world_pe(pe())));
}

namespace {

/// Waits for room in the mailbox. Waits for the proxy report the PE's WaitWords as their word.
class PostWait final : public Wait {
 public:
  PostWait(int block, const void* words, wire::Mailbox& mailbox, const wire::Request& request)
      : block_(block), words_(words), mailbox_(mailbox), request_(request) {}

  bool is_answered() override {
    if (number_ == 0) number_ = mailbox_.try_post(request_);
    return number_ != 0;
  }
  Awaited awaited() const override {
    const wire::Requests requests = mailbox_.requests();
    return {block_, words_, requests.posted + 1, requests.posted};
  }
  std::uint64_t number() const { return number_; }

 private:
  int block_;
  const void* words_;
  wire::Mailbox& mailbox_;
  const wire::Request& request_;
  std::uint64_t number_ = 0;
};

/// Waits until the proxy has come as far as a request.
class RequestWait final : public Wait {
 public:
  using Has = bool (wire::Mailbox::*)(std::uint64_t) const;

  RequestWait(int block, const void* words, const wire::Mailbox& mailbox, Has has, std::uint64_t number)
      : block_(block), words_(words), mailbox_(mailbox), has_(has), number_(number) {}

  bool is_answered() override { return (mailbox_.*has_)(number_); }
  Awaited awaited() const override { return {block_, words_, number_, mailbox_.requests().answered}; }

 private:
  int block_;
  const void* words_;
  const wire::Mailbox& mailbox_;
  Has has_;
  std::uint64_t number_;
};

}  // namespace

std::uint64_t BlockCore::post(const wire::Request& request) {
  PostWait wait(index(), grid_.context.abort, *grid_.mailbox, request);
  strand_.await(wait);
  return wait.number();
}

bool BlockCore::post_put(void* to, const void* from, Size bytes, cpu::Completion completion,
                         const cpu::SignalUpdate* signal, Site site) {
  const void* const address = signal != nullptr ? signal->word : to;
  const auto spot = far_spot(address);
  if (!spot) return false;
  if (bytes == 0 && signal == nullptr) return true;
  wire::Request request;
  request.pe = spot->pe;
  request.local = const_cast<void*>(from);
  request.bytes = bytes;
  if (bytes > 0) {
    const auto there = far_spot(to);
    if (!there || there->pe != spot->pe)
      throw InvalidArgument(fmt::format("{}:{}: put to {}, which is not in the symmetric heap of PE {}", site.file,
                                        site.line, to, spot->pe));
    request.offset = there->offset;
  }
  if (signal != nullptr) {
    request.has_word = true;
    request.op = signal->op;
    request.word = spot->offset;
    request.value = signal->value;
  }
  const bool is_held = bytes <= wire::kMostHeld;
  if (is_held && bytes > 0) request.hold(from);
  const std::uint64_t number = post(request);
  if (completion == cpu::Completion::kBlocking && !is_held) {
    RequestWait wait(index(), grid_.context.abort, *grid_.mailbox, &wire::Mailbox::is_sent, number);
    strand_.await(wait);
  }
  return true;
}

void BlockCore::quiet(Site) {
  order_.fence();
  if (grid_.mailbox == nullptr || grid_.mailbox->is_quiet()) return;
  wire::Request request;
  request.kind = wire::Request::Kind::kFlush;
  const std::uint64_t number = post(request);
  RequestWait wait(index(), grid_.context.abort, *grid_.mailbox, &wire::Mailbox::is_answered, number);
  strand_.await(wait);
}

void BlockCore::looked(const void* word, std::uint64_t value, std::uint64_t expected) {
  // A loop over several words is one, too.
  constexpr unsigned kLooksOfLoop = 64;
  const bool same = looked_at_ == word && looked_value_ == value;
  looked_at_ = word;
  looked_value_ = value;
  if (same || ++looks_ % kLooksOfLoop == 0) strand_.look_again({index(), word, expected, value});
}

void BlockCore::read_scalar(void* to, const void* from, Size bytes, Site) {
  std::uint64_t value = 0;
  with_word(bytes, [&](auto word) {
    word = __atomic_load_n(static_cast<const decltype(word)*>(from), __ATOMIC_RELAXED);
    std::memcpy(to, &word, sizeof word);
    value = word;
  });
  looked(from, value, value);
}

void BlockCore::write(void* to, cpu::Buffer payload, Size bytes, Site site) {
  move_bytes("store", to, payload.data(), bytes, site);
}

void BlockCore::write_scalar(void* to, const void* value, Size bytes, Site) {
  with_word(bytes, [&](auto word) {
    std::memcpy(&word, value, sizeof word);
    __atomic_store_n(static_cast<decltype(word)*>(to), word, __ATOMIC_RELAXED);
  });
  acted();
  ring_owner(grid_.context, to);
}

void BlockCore::move(const char* operation, void* to, const void* from, Size bytes, Site site) {
  constexpr Size kLeast = Size{512} << 10;  // shorter ones are chunks of pipelines, which the next PE reads at once
  moved_ += max(bytes, 0);
  if (bytes >= kLeast && moved_ >= cpu::kLongCopy / count())
    cpu::copy_past_caches(to, from, bytes);
  else
    move_bytes(operation, to, from, bytes, site);
}

void BlockCore::copy(void* to, const void* from, Size bytes, Site site) {
  acted();
  if (bytes > 0) require_near(to, "copy", site);
  if (bytes > 0) require_near(from, "copy", site);
  move("copy", to, from, bytes, site);
}

void BlockCore::put(void* to, const void* from, Size bytes, cpu::Completion completion, const cpu::SignalUpdate* signal,
                    Site site) {
  acted();
  if (signal != nullptr) require_word(signal->word, "put_signal's signal", site);
  if (bytes >= 0 && post_put(to, from, bytes, completion, signal, site)) return;
  move("put", to, from, bytes, site);
  if (signal == nullptr) return;
  change(*signal, std::memory_order_release);
  ring_owner(grid_.context, signal->word);
}

void BlockCore::get(void* to, const void* from, Size bytes, cpu::Completion completion, Site site) {
  acted();
  if (const auto spot = bytes > 0 ? far_spot(from) : std::nullopt) {
    wire::Request request;
    request.kind = wire::Request::Kind::kGet;
    request.pe = spot->pe;
    request.local = to;
    request.offset = spot->offset;
    request.bytes = bytes;
    const std::uint64_t number = post(request);
    if (completion == cpu::Completion::kNonBlocking) return;
    RequestWait wait(index(), grid_.context.abort, *grid_.mailbox, &wire::Mailbox::is_answered, number);
    return strand_.await(wait);
  }
  move("get", to, from, bytes, site);
}

void BlockCore::signal(const cpu::SignalUpdate& update, Order order, Site site) {
  acted();
  require_word(update.word, "signal", site);
  if (post_put(nullptr, nullptr, 0, cpu::Completion::kNonBlocking, &update, site)) return;
  // A release is also what keeps earlier reads before it.
  if (order == Order::kRelaxed && !update.after_reads)
    order_.change_behind(update);
  else
    change(update, std::memory_order_release);
  ring_owner(grid_.context, update.word);
}

namespace {

class WordsWait final : public Wait {
 public:
  WordsWait(int block, const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, std::memory_order order)
      : block_(block), word_(words), left_(n), stride_(stride), cmp_(cmp), value_(value), order_(order) {}

  bool is_answered() override {
    for (; left_ > 0; --left_, word_ += stride_)
      if (!compare(found_ = load(word_, order_), cmp_, value_)) return false;
    return true;
  }
  Awaited awaited() const override { return {block_, word_, value_, found_}; }

 private:
  int block_;
  const Signal* word_;
  Size left_;
  Size stride_;
  Cmp cmp_;
  Epoch value_;
  std::memory_order order_;
  Epoch found_ = 0;
};

/// The word of a packet that holds its flag. A packet of 8 bytes is one word, with the flag in its upper half.
/// A longer packet has its flag behind its data.
struct PacketWord {
  explicit PacketWord(const cpu::PacketForm& form)
      : is_whole(form.bytes == Size{sizeof(std::uint64_t)}),
        offset(is_whole ? 0 : form.flag_offset),
        flag_shift(is_whole ? 32 : 0) {}

  bool is_whole;
  Size offset;
  int flag_shift;
};

class PacketsWait final : public Wait {
 public:
  PacketsWait(int block, const void* packets, Size count, const cpu::PacketForm& form, std::uint64_t flag)
      : block_(block),
        word_(form),
        at_(static_cast<const std::byte*>(packets)),
        end_(at_ + count * form.bytes),
        packet_bytes_(form.bytes),
        flag_(flag) {}

  bool is_answered() override {
    // The loop's variables stay in registers: atomics make members be written.
    const std::byte* at = at_;
    std::uint64_t found = flag_;
    for (; at < end_; at += packet_bytes_) {
      found = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at + word_.offset), __ATOMIC_ACQUIRE) >>
              word_.flag_shift;
      if (found != flag_) break;
    }
    at_ = at;
    found_ = found;
    return at == end_;
  }
  Awaited awaited() const override { return {block_, at_, flag_, found_}; }

 private:
  const int block_;
  const PacketWord word_;
  const std::byte* at_;
  const std::byte* const end_;
  const Size packet_bytes_;
  const std::uint64_t flag_;
  std::uint64_t found_ = 0;
};

class RolesWait final : public Wait {
 public:
  explicit RolesWait(const int& running) : running_(running) {}
  bool is_answered() override { return running_ == 0; }

 private:
  const int& running_;
};

}  // namespace

void BlockCore::wait(const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order, Site site) {
  if (n < 0)
    throw InvalidArgument(fmt::format("{}:{}: wait of {} words, must not be negative", site.file, site.line, n));
  if (n > 0) require_word(words, "wait", site);
  WordsWait wait(index(), words, n, stride, cmp, value, memory_order(order));
  strand_.await(wait);
}

bool BlockCore::test(const Signal* word, Cmp cmp, Epoch value, Site site) {
  require_word(word, "signal_test", site);
  const Epoch found = load(word, std::memory_order_acquire);
  if (compare(found, cmp, value)) {
    acted();
    return true;
  }
  strand_.look_again({index(), word, value, found});
  return false;
}

Epoch BlockCore::next_epoch(Epochs epochs, Epoch count, Site) {
  Epoch& word = epochs.words[index()];
  const Epoch first = word + 1;
  word += count;
  return first;
}

std::uint64_t BlockCore::atomic(void* word, int bytes, cpu::AtomicOp op, std::uint64_t operand, std::uint64_t expected,
                                Scope, Order order, Site) {
  const std::memory_order by = memory_order(order);
  const std::uint64_t old = bytes == 4
                                ? atomic_of(static_cast<std::uint32_t*>(word), op, static_cast<std::uint32_t>(operand),
                                            static_cast<std::uint32_t>(expected), by)
                                : atomic_of(static_cast<std::uint64_t*>(word), op, operand, expected, by);
  const bool changes = op == cpu::AtomicOp::kAdd        ? operand != 0
                       : op == cpu::AtomicOp::kExchange ? operand != old
                                                        : old == expected && operand != expected;
  if (changes) {
    acted();
    ring_owner(grid_.context, word);
  } else {
    looked(word, old, expected);
  }
  return old;
}

void BlockCore::check_packets(const void* to, Size, Site site) const {
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0)
    throw CheckFailed(fmt::format("{}:{}: packet store at {} by PE {}: packets begin at a multiple of 16 bytes",
                                  site.file, site.line, to, pe()));
}

void BlockCore::write_packets(void* to, cpu::Buffer packets, const cpu::PacketForm& form, Site site) {
  acted();
  require_near(to, "packets", site);
  const PacketWord word(form);
  auto* at = static_cast<std::byte*>(to);
  const std::byte* from = packets.data();
  for (const std::byte* const end = from + packets.bytes(); from < end; from += form.bytes, at += form.bytes) {
    if (!word.is_whole) std::memcpy(at, from, static_cast<std::size_t>(word.offset));
    std::uint64_t last;
    std::memcpy(&last, from + word.offset, sizeof last);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(at + word.offset), last, __ATOMIC_RELEASE);
  }
  ring_owner(grid_.context, to);
}

void BlockCore::wait_packets(const void* packets, Size count, const cpu::PacketForm& form, std::uint64_t flag, Site) {
  PacketsWait wait(index(), packets, count, form, flag);
  strand_.await(wait);
}

void BlockCore::multimem(Symm<std::byte>, Size, cpu::MultimemOp, Site site) {
  acted();
  if (!grid_.has_multicast)
    throw Unsupported(fmt::format("{}:{}: machine '{}' has no multicast", site.file, site.line, grid_.machine));
}

void BlockCore::deliver_multimem(void* to, cpu::Buffer payload, Site site) {
  move_bytes("multimem store", to, payload.data(), payload.bytes(), site);
}

void BlockCore::run_roles(int n, const int* widths, const std::function<void(int, cpu::BlockCore&)>& body, Site) {
  require_roles(n, widths, warps_, role_ != 0);
  int running = n;
  bool in_vain = false;
  for (int i = 0; i < n; ++i)
    strand_.worker().add([&, i](Strand& strand) {
      try {
        BlockCore core(strand, grid_, index(), widths[i], i + 1, &order_);
        body(i, core);
      } catch (const WaitIsOver&) {
        in_vain = true;
      }
      --running;
    });
  RolesWait wait(running);
  strand_.await(wait);
  if (in_vain) throw WaitIsOver{};
}

}  // namespace tandem::host
