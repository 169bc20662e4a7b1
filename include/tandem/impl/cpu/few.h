#pragma once
/// A few scalars on CPUs; see FewContract.

#include <array>
#include <cstdint>
#include <type_traits>

namespace tandem::cpu {

template <class T>
class Few {
 public:
  explicit Few(int count) : count_(count) {}

  int count() const { return count_; }
  T at(int i) const { return of_[static_cast<std::size_t>(i)]; }
  void set(int i, T value) { of_[static_cast<std::size_t>(i)] = value; }

  template <class F>
  auto map(F f) const {
    Few<decltype(f(T{}))> result(count_);
    for (int i = 0; i < count_; ++i) result.set(i, f(at(i)));
    return result;
  }
  template <class U, class F>
  auto zip(const Few<U>& other, F f) const {
    Few<decltype(f(T{}, U{}))> result(count_);
    for (int i = 0; i < count_; ++i) result.set(i, f(at(i), other.at(i)));
    return result;
  }
  template <class F>
  std::uint32_t mask(F f) const {
    std::uint32_t bits = 0;
    for (int i = 0; i < count_; ++i) bits |= std::uint32_t{f(at(i)) ? 1U : 0U} << i;
    return bits;
  }
  template <class F>
  std::uint64_t join(F f) const {
    std::uint64_t bits = 0;
    for (int i = 0; i < count_; ++i) bits |= f(at(i));
    return bits;
  }

 private:
  int count_;
  std::array<T, 32> of_{};
};

}  // namespace tandem::cpu
