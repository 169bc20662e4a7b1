#if !defined(TANDEM_SANITIZER_FIBERS)

#include "base/fiber/fiber_switch.h"

namespace tandem {

namespace fcontext = boost::context::detail;

Switch::Switch() = default;
Switch::~Switch() = default;

void Switch::begin(fcontext::transfer_t from) {
  auto& self = *static_cast<Switch*>(from.data);
  self.other_ = from.fctx;
  self.main_(self.argument_);
}

void Switch::prepare(const Stack& stack, Main main, void* argument) {
  main_ = main;
  argument_ = argument;
  other_ = fcontext::make_fcontext(stack.low + stack.bytes, static_cast<std::size_t>(stack.bytes), &Switch::begin);
}

void Switch::leave_for_good() {
  leave();
  __builtin_unreachable();
}

}  // namespace tandem

#endif
