#include "host/recording.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "host/watchdog.h"

namespace tandem::host {

namespace {

using cuda::Record;
using cuda::RecordKind;

std::uint32_t nanoseconds(std::uint64_t begin) {
  constexpr std::uint64_t kMost = ~std::uint32_t{0};
  return static_cast<std::uint32_t>(std::min(now_ns() - begin, kMost));
}

std::uint64_t bits(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// The bytes of data in `count` packets.
Size data_bytes(Size count, const cpu::PacketForm& form) {
  return count * (form.bytes == Size{sizeof(LLPacket)} ? Size{sizeof(LLPacket::data)} : Size{sizeof(LL128Line::data)});
}

std::uint64_t packet_payload(std::uint64_t flag, Size count, const cpu::PacketForm& form) {
  return flag << 32 | static_cast<std::uint32_t>(data_bytes(count, form));
}

}  // namespace

BlockRecords::BlockRecords(GridRecords& grid, int block)
    : records_(grid.blocks[static_cast<std::size_t>(block)]), most_(static_cast<std::size_t>(grid.most_operations)) {
  records_ = {Record{now_ns(), 0, RecordKind::kBlock, 0, 0, 0, static_cast<std::uint64_t>(block), 0}};
}

BlockRecords::~BlockRecords() {
  Record& life = records_.front();
  life.duration = nanoseconds(life.begin);
  life.payload = operations_;
}

void BlockRecords::add(const Record& record) {
  if (record.kind != RecordKind::kEnd) ++operations_;
  if (records_.size() <= most_) records_.push_back(record);
}

RecordedSpan::RecordedSpan(BlockRecords* records, const Record& subject) : records_(records), record_(subject) {
  if (records_ != nullptr) record_.begin = now_ns();
}

RecordedSpan::~RecordedSpan() {
  if (records_ == nullptr) return;
  record_.duration = nanoseconds(record_.begin);
  records_->add(record_);
}

RecordedCore::RecordedCore(cpu::BlockCore& core, BlockRecords& records, int role)
    : cpu::BlockCore(core.team(), core.index(), core.count(), core.layout(1).holder, false),
      core_(core),
      records_(records),
      role_(static_cast<std::uint8_t>(role)) {}

Record RecordedCore::subject(RecordKind kind, const void* address, Size bytes) const {
  return {0, 0, kind, role_, 0, 1, bits(address), static_cast<std::uint64_t>(bytes)};
}

void RecordedCore::note_begin(RecordKind kind, const void* address, Size bytes) {
  looked_at_ = nullptr;
  Record record = subject(kind, address, bytes);
  record.begin = now_ns();
  records_.add(record);
}

/// The time is that before the change, so that it is not later than the end of a wait for it.
void RecordedCore::note_signal(const cpu::SignalUpdate& update) {
  looked_at_ = nullptr;
  Record record = subject(RecordKind::kSignal, update.word, 0);
  record.begin = now_ns();
  record.detail = static_cast<std::uint8_t>(update.op);
  record.payload = update.value;
  records_.add(record);
}

bool RecordedCore::looks_again(const void* word) { return std::exchange(looked_at_, word) == word; }

void RecordedCore::read(const void* from, Size bytes, Site site, bool is_moved) {
  note_begin(RecordKind::kLoad, from, bytes);
  core_.read(from, bytes, site, is_moved);
}

void RecordedCore::read_scalar(void* to, const void* from, Size bytes, Site site) {
  if (!looks_again(from)) {
    note_begin(RecordKind::kLoad, from, bytes);
    looked_at_ = from;
  }
  core_.read_scalar(to, from, bytes, site);
}

void RecordedCore::read_all(Symm<const std::byte> from, Size bytes, Site site) {
  note_begin(RecordKind::kLoad, from.local(), bytes * num_pes());
  core_.read_all(from, bytes, site);
}

void RecordedCore::write(void* to, cpu::Buffer payload, Size bytes, Site site) {
  looked_at_ = nullptr;
  const RecordedSpan span(&records_, subject(RecordKind::kStore, to, bytes));
  core_.write(to, std::move(payload), bytes, site);
}

void RecordedCore::write_scalar(void* to, const void* value, Size bytes, Site site) {
  looked_at_ = nullptr;
  const RecordedSpan span(&records_, subject(RecordKind::kStore, to, bytes));
  core_.write_scalar(to, value, bytes, site);
}

void RecordedCore::copy(void* to, const void* from, Size bytes, Site site) {
  looked_at_ = nullptr;
  const RecordedSpan span(&records_, subject(RecordKind::kCopy, to, bytes));
  core_.copy(to, from, bytes, site);
}

void RecordedCore::put(void* to, const void* from, Size bytes, cpu::Completion completion,
                       const cpu::SignalUpdate* signal, Site site) {
  looked_at_ = nullptr;
  {
    const RecordedSpan span(&records_, subject(RecordKind::kPut, to, bytes));
    core_.put(to, from, bytes, completion, signal, site);
  }
  if (signal != nullptr) note_signal(*signal);
}

void RecordedCore::get(void* to, const void* from, Size bytes, cpu::Completion completion, Site site) {
  looked_at_ = nullptr;
  const RecordedSpan span(&records_, subject(RecordKind::kGet, from, bytes));
  core_.get(to, from, bytes, completion, site);
}

void RecordedCore::fence(Site site) {
  looked_at_ = nullptr;
  const RecordedSpan span(&records_, subject(RecordKind::kFence, nullptr, 0));
  core_.fence(site);
}

void RecordedCore::quiet(Site site) {
  looked_at_ = nullptr;
  const RecordedSpan span(&records_, subject(RecordKind::kQuiet, nullptr, 0));
  core_.quiet(site);
}

void RecordedCore::signal(const cpu::SignalUpdate& update, Order order, Site site) {
  note_signal(update);
  core_.signal(update, order, site);
}

void RecordedCore::wait(const Signal* words, Size n, Size stride, Cmp cmp, Epoch value, Order order, Site site) {
  looked_at_ = nullptr;
  Record record = subject(RecordKind::kWait, words, 0);
  record.payload = value;
  record.detail = static_cast<std::uint8_t>(cmp);
  record.count = static_cast<std::uint8_t>(stride == 1 ? std::clamp<Size>(n, 0, 255) : 1);
  const RecordedSpan span(&records_, record);
  core_.wait(words, n, stride, cmp, value, order, site);
}

bool RecordedCore::test(const Signal* word, Cmp cmp, Epoch value, Site site) {
  Record record = subject(RecordKind::kTest, word, 0);
  record.payload = value;
  record.detail = static_cast<std::uint8_t>(cmp);
  const RecordedSpan span(looks_again(word) ? nullptr : &records_, record);
  return core_.test(word, cmp, value, site);
}

Epoch RecordedCore::next_epoch(Epochs epochs, Epoch count, Site site) {
  looked_at_ = nullptr;
  const RecordedSpan span(&records_, subject(RecordKind::kAtomic, epochs.words + index(), sizeof(Epoch)));
  return core_.next_epoch(epochs, count, site);
}

std::uint64_t RecordedCore::atomic(void* word, int bytes, cpu::AtomicOp op, std::uint64_t operand,
                                   std::uint64_t expected, Scope scope, Order order, Site site) {
  const RecordedSpan span(looks_again(word) ? nullptr : &records_, subject(RecordKind::kAtomic, word, bytes));
  return core_.atomic(word, bytes, op, operand, expected, scope, order, site);
}

void RecordedCore::write_packets(void* to, cpu::Buffer packets, const cpu::PacketForm& form, Site site) {
  looked_at_ = nullptr;
  const Size count = packets.bytes() / form.bytes;
  std::uint32_t flag = 0;  // the lower half, if it is longer
  if (count > 0) std::memcpy(&flag, packets.data() + form.flag_offset, sizeof flag);
  Record record = subject(RecordKind::kPacketPut, to, 0);
  record.payload = packet_payload(flag, count, form);
  record.detail = static_cast<std::uint8_t>(form.bytes);
  record.begin = now_ns();  // as a signal's
  records_.add(record);
  core_.write_packets(to, std::move(packets), form, site);
}

void RecordedCore::wait_packets(const void* packets, Size count, const cpu::PacketForm& form, std::uint64_t flag,
                                Site site) {
  looked_at_ = nullptr;
  Record record = subject(RecordKind::kPacketGet, packets, 0);
  record.payload = packet_payload(flag, count, form);
  record.detail = static_cast<std::uint8_t>(form.bytes);
  const RecordedSpan span(&records_, record);
  core_.wait_packets(packets, count, form, flag, site);
}

void RecordedCore::multimem(Symm<std::byte> at, Size bytes, cpu::MultimemOp op, Site site) {
  note_begin(op == cpu::MultimemOp::kLoad ? RecordKind::kLoad : RecordKind::kStore, at.local(), bytes * num_pes());
  core_.multimem(at, bytes, op, site);
}

void RecordedCore::deliver_multimem(void* to, cpu::Buffer payload, Site site) {
  core_.deliver_multimem(to, std::move(payload), site);
}

void RecordedCore::run_roles(int n, const int* widths, const std::function<void(int, cpu::BlockCore&)>& body,
                             Site site) {
  note_end();
  const auto run_role = [&](int role, cpu::BlockCore& core) {
    RecordedCore own(core, records_, role + 1);
    body(role, own);
    own.note_end();
  };
  core_.run_roles(n, widths, run_role, site);
}

}  // namespace tandem::host
