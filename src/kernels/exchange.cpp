#include <array>

#include "kernels/exchange_put_signal.h"
#include "kernels/plan.h"

namespace tandem::kernels {

std::span<const Algorithm> exchange_algorithms() {
  constexpr Collective kSelf = Collective::kExchange;
  static const std::array<Algorithm, 1> algorithms{{
      {{kSelf, "put_signal", "partners put to each other, both ways at once", false},
       make_byte_plan<kSelf, ExchangePutSignal>},
  }};
  return algorithms;
}

}  // namespace tandem::kernels
