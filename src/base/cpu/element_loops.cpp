#include "tandem/impl/cpu/element_loops.h"

namespace tandem::cpu::impl {

TANDEM_ALL_ELEMENT_LOOPS(template);

}  // namespace tandem::cpu::impl
