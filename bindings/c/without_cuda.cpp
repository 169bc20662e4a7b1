// A library that was built without CUDA.
#include "host_order.h"

namespace tandem::c {

std::unique_ptr<StreamOrder> make_stream_order(DeviceKind, int, int) { return std::make_unique<HostOrder>(); }

}  // namespace tandem::c
