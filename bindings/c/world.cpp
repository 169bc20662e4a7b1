#include "world.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/plan/checked_plan.h"
#include "tandem/advanced/local_handle.h"
#include "tandem/error.h"

namespace tandem::c {

namespace {

constexpr Size kLeastStaging = Size{64} << 10;

}  // namespace

CWorld::CWorld(std::unique_ptr<WorldProcess> process, Size staging_bytes, bool any_memory, const Controls& controls)
    : process_(std::move(process)), any_memory_(any_memory) {
  check_controls(controls, world().machine());
  // Names are compared: PEs that were told otherwise hear of each other here.
  const std::string text = controls.text();
  world().heap().signals(1, text.empty() ? "calls" : "calls with " + text);
  plans_ = std::make_unique<Plans>(world(), std::max(staging_bytes, kLeastStaging), controls);
  if (!controls.stages_when_needed) plans_->make_staging();
  order_ = std::make_unique<CallOrder>(world(), *plans_);
  order_of_streams_ =
      make_stream_order(process_->kind(), process_->device(), world().machine().gpu.sm_count, controls.orders_graphs);
  group_ = std::make_unique<SendRecvGroup>(world(), SendRecvOptions{.blocks = controls.max_blocks});
}

int BufferNumbers::next() const {
  const int lowest = freed_.empty() ? most_ + 1 : *freed_.begin();
  if (lowest > Place::kMostBuffers)
    throw OutOfMemory(fmt::format("{} {} are there, as many as a world has numbers for", most_, what_));
  return lowest;
}

void CWorld::add(const Buffer& buffer) {
  buffers_.push_back(buffer);
  numbers_of(buffer).take(buffer.number);
}

void CWorld::remove(const void* begin) {
  const auto found =
      std::find_if(buffers_.begin(), buffers_.end(), [&](const Buffer& buffer) { return buffer.begin == begin; });
  if (found == buffers_.end()) return;
  numbers_of(*found).free(found->number);
  buffers_.erase(found);
}

void* CWorld::allocate(Size bytes) {
  const int number = allocations_.next();
  const auto memory = world().heap().allocate<std::byte>(bytes, fmt::format("allocation {}", number));
  add({memory.local(), bytes, memory, false, number});
  return memory.local();
}

void CWorld::free(const void* pointer) {
  world().heap().free(Symm<const std::byte>(static_cast<const std::byte*>(pointer), 0, 0));
  remove(pointer);
}

void CWorld::register_memory(void* pointer, Size bytes) {
  const int number = registrations_.next();
  const auto memory = process_->register_buffer(pointer, bytes);
  add({static_cast<const std::byte*>(pointer), bytes, memory, true, number});
}

void CWorld::unregister_memory(void* pointer) {
  process_->unregister_buffer(pointer);
  remove(pointer);
}

void CWorld::hide(const void* pointer) {
  for (Buffer& buffer : buffers_)
    if (buffer.begin == pointer && buffer.is_registered) buffer.bytes = 0;
}

Place CWorld::place_of(const void* pointer, Size bytes) const {
  const auto* const begin = static_cast<const std::byte*>(pointer);
  for (const Buffer& buffer : buffers_) {
    const Size offset = begin - buffer.begin;
    // An empty range counts as one byte, because the next buffer may start where this one ends.
    if (begin >= buffer.begin && begin + std::max<Size>(bytes, 1) <= buffer.begin + buffer.bytes)
      return {buffer.memory + offset, Place::number_of(buffer.is_registered, buffer.number, offset)};
  }
  return {};
}

void* CWorld::on_pe(const void* pointer, Size bytes, int pe, const char* what) const {
  if (pe < 0 || pe >= pes()) throw InvalidArgument(fmt::format("pe: {} given, allowed is 0 to {}", pe, pes() - 1));
  const Place place = place_of(pointer, bytes);
  if (!place.memory)
    throw InvalidArgument(
        fmt::format("{}: {} with {} bytes given, allowed is memory of tandem_alloc or tandem_register", what,
                    fmt::ptr(pointer), bytes));
  return place.memory->on(pe);
}

Symm<std::byte> CWorld::handle_of(const void* pointer) {
  if (pointer == nullptr) return {};
  if (const Place place = place_of(pointer, 0); place.memory && !any_memory_) return *place.memory;
  return local_handle(world(), static_cast<std::byte*>(const_cast<void*>(pointer)));
}

void CWorld::run(const Call& call) {
  // On every PE, since it is where they lie that decides what is copied.
  if (call.count > 0 && (call.in == nullptr || call.out == nullptr))
    throw InvalidArgument(fmt::format("{}: NULL given for {}; every PE gives both, also without elements",
                                      name(call.what.collective), call.in == nullptr ? "in" : "out"));
  in_order(call.stream, [&](bool is_captured) { enqueue(call, is_captured); });
}

void CWorld::enqueue(const Call& call, bool is_captured) {
  const auto& [collective, type, op, root, wire] = call.what;
  const int n = process_->pes();
  const Size element = size_of(type);
  const Size ins = input_elements(collective, call.count, n, process_->pe(), root) * element;
  const Size outs = output_elements(collective, call.count, n, process_->pe(), root) * element;
  const auto* const in_begin = static_cast<const std::byte*>(call.in);
  auto* const out_begin = static_cast<std::byte*>(call.out);
  const bool may_be_reached = call.count > 0 && !any_memory_ && !call.any_memory;
  Place in = may_be_reached ? place_of(call.in, ins) : Place{};
  Place out = may_be_reached ? place_of(call.out, outs) : Place{};
  // In place both are the same memory, also where only one of them lies within what peers reach.
  const bool overlap = in_begin < out_begin + outs && out_begin < in_begin + ins;
  if (overlap && (!in.memory || !out.memory)) in = out = {};
  // Every PE's part of a gathered output is where that is.
  if (overlap && collective == Collective::kAllGather) in.number = out.number;
  // Checks errors of this PE, and errors that all PEs see, before others may compare their calls with this one.
  plans_->choice(call.what, call.count, !in.memory, !out.memory);
  kernels::check_held(world(), "in", in_begin, ins, name(collective));
  kernels::check_held(world(), "out", out_begin, outs, name(collective));
  kernels::check_overlap(collective, name(collective), in_begin, out_begin, call.count, element, root, world().team());
  order_->note(call.what, call.count, in, out);
  Stream stream = process_->borrow_stream(call.stream);
  CollectivePlan& plan = plans_->plan(call.what, call.count, !in.memory, !out.memory, {stream, is_captured});
  const auto from = in.memory ? Symm<const std::byte>(*in.memory) : local_handle(world(), in_begin);
  const auto to = out.memory ? *out.memory : local_handle(world(), out_begin);
  try {
    order_of_streams_->reserve(call.stream, plan.blocks());
    if (call.scale)
      plan.run_scaled(stream, from, to, call.count, *call.scale);
    else
      plan.run(stream, from, to, call.count);
  } catch (...) {
    order_->take_back();
    throw;
  }
}

void CWorld::send_recv(const std::vector<Send>& sends, const std::vector<Receive>& receives, const OwnPart& own,
                       void* stream) {
  in_order(stream, [&](bool) {
    Stream borrowed = process_->borrow_stream(stream);
    order_of_streams_->reserve(stream, group_->blocks());
    group_->run(borrowed, sends, receives);
    has_sent_ = true;
    if (own.to == own.from || own.bytes == 0) return;
    borrowed.copy_async(own.to, own.from, own.bytes);
  });
}

void CWorld::barrier_on(void* stream) {
  in_order(stream, [&](bool) {
    if (!barrier_) barrier_ = make_team_barrier(world(), world().team());
    Stream borrowed = process_->borrow_stream(stream);
    order_of_streams_->reserve(stream, 1);
    tandem::barrier_on(borrowed, *barrier_, world().team());
  });
}

void CWorld::synchronize(void* stream) {
  Stream borrowed = process_->borrow_stream(stream);
  std::erase_if(checks_, [](const auto& check) { return check.expired(); });
  for (const auto& check : checks_) borrowed.check_at_synchronize(check.lock());
  borrowed.synchronize();
  order_of_streams_->ended(stream);
  if (has_sent_) group_->check(borrowed);
}

}  // namespace tandem::c
