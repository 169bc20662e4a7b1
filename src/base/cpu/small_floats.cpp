#include "tandem/impl/cpu/small_floats.h"

#include "tandem/impl/cpu/fragment.h"

namespace tandem::cpu::impl {

namespace {

// Each of these functions is compiled with the loop inlined into it, so that its attribute holds for the loop.
template <class Loop>
[[gnu::flatten]] void run_plain(const Loop& loop) {
  loop();
}

#if defined(__x86_64__)

template <class Loop>
[[gnu::flatten, gnu::target("avx2")]] void run_avx2(const Loop& loop) {
  loop();
}
template <class Loop>
[[gnu::flatten, gnu::target("avx512f,avx512bw,avx512vl")]] void run_avx512(const Loop& loop) {
  loop();
}

template <class Loop>
void run(const Loop& loop) {
  static const bool has_avx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  has_avx512 ? run_avx512(loop) : has_avx2 ? run_avx2(loop) : run_plain(loop);
}

#else

template <class Loop>
void run(const Loop& loop) {
  run_plain(loop);
}

#endif

}  // namespace

template <class T>
void widen(float* to, const T* from, Size count) {
  run([=] { for_each_element(to, from, count, [](T x) { return static_cast<float>(x); }); });
}

template <class T>
void narrow(T* to, const float* from, Size count) {
  run([=] { for_each_element(to, from, count, [](float x) { return static_cast<T>(x); }); });
}

template <class T>
void widen_sum(float* to, const T* a, const T* b, Size count) {
  run([=] { for_each_pair(to, a, b, count, [](T x, T y) { return static_cast<float>(x) + static_cast<float>(y); }); });
}

template <class T>
void widen_add(float* to, const T* from, Size count) {
  run([=] { combine_each_element(to, from, count, [](float x, T y) { return x + static_cast<float>(y); }); });
}

template void widen(float*, const bf16*, Size);
template void widen(float*, const f16*, Size);
template void narrow(bf16*, const float*, Size);
template void narrow(f16*, const float*, Size);
template void widen_sum(float*, const bf16*, const bf16*, Size);
template void widen_sum(float*, const f16*, const f16*, Size);
template void widen_add(float*, const bf16*, Size);
template void widen_add(float*, const f16*, Size);

}  // namespace tandem::cpu::impl
