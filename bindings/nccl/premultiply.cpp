#include "bindings/nccl/premultiply.h"

#include <cstring>

#include "tandem/reduce_op.h"

namespace tandem::nccl {

namespace {

template <class T>
T loaded(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace

std::vector<std::byte> premultiplied(const Scalar& scalar, const void* in, Size count) {
  std::vector<std::byte> all(static_cast<std::size_t>(count * size_of(scalar.type)));
  dispatch(scalar.type, [&]<class T>() {
    using A = Accumulator<T>;
    const auto scale = convert<A>(loaded<T>(scalar.place != nullptr ? scalar.place : scalar.value.data()));
    const auto* const from = static_cast<const std::byte*>(in);
    for (std::size_t at = 0; at < all.size(); at += sizeof(T)) {
      const T product = convert<T>(premultiply(convert<A>(loaded<T>(from + at)), scale));
      std::memcpy(all.data() + at, &product, sizeof(T));
    }
  });
  return all;
}

}  // namespace tandem::nccl
