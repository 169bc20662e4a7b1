#pragma once
/// Common parts of c_api_gpu_check: a world through tandem.h, memory with words in it, and expectations.
#include <cuda_runtime.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem.h"

namespace tandem::test {

using Words = std::vector<unsigned>;

inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

inline void cuda(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

/// Expects success.
inline void well(tandem_status status) {
  if (status != TANDEM_SUCCESS)
    throw std::runtime_error("status " + std::to_string(status) + ": " + tandem_last_error());
}

/// Expects this failure.
inline void refused(tandem_status status, tandem_status expected, const std::string& part) {
  const std::string text = tandem_last_error();
  expect(status == expected && text.find(part) != std::string::npos,
         "status " + std::to_string(expected) + " and '" + part + "', not " + std::to_string(status) + ": " + text);
}

/// Memory of cudaMalloc, some words of which are used.
class Memory {
 public:
  explicit Memory(size_t words) : size_(words) { cuda(cudaMalloc(&begin_, (words + 1) * 4)); }
  explicit Memory(const Words& contents) : Memory(contents.size()) {
    cuda(cudaMemcpy(begin_, contents.data(), contents.size() * 4, cudaMemcpyHostToDevice));
  }
  ~Memory() { cudaFree(begin_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  unsigned* at(size_t word = 0) const { return begin_ + word; }
  Words contents() const {
    Words words(size_);
    cuda(cudaMemcpy(words.data(), begin_, size_ * 4, cudaMemcpyDeviceToHost));
    return words;
  }

 private:
  unsigned* begin_ = nullptr;
  size_t size_;
};

inline unsigned word(int from, int to, size_t i) {
  return static_cast<unsigned>(from) * 1'000'003U + static_cast<unsigned>(to) * 10'007U + static_cast<unsigned>(i) * 7U;
}

inline Words words(int from, int to, size_t count) {
  Words all(count);
  for (size_t i = 0; i < count; ++i) all[i] = word(from, to, i);
  return all;
}

/// A world, and what its PEs need to know of it.
struct Joined {
  tandem_world* world = nullptr;
  int pe = 0;
  int n = 0;

  explicit Joined(double timeout_s = 10, size_t heap_bytes = 0, size_t heap_limit_bytes = 0, bool any_memory = false) {
    tandem_options options{};
    options.timeout_s = options.arrival_timeout_s = timeout_s;
    options.heap_bytes = heap_bytes;
    options.heap_limit_bytes = heap_limit_bytes;
    options.any_memory = any_memory ? 1 : 0;
    well(tandem_world_from_environment(&world, &options));
    number();
  }
  Joined(const Joined& whole, int color, int key) {
    well(tandem_world_split(&world, whole.world, color, key, nullptr));
    number();
  }
  /// After a failure it prints why a wait on the device ended, which only a synchronizing call knows.
  ~Joined() {
    if (std::uncaught_exceptions() > exceptions_before_ && tandem_synchronize(world, nullptr) != TANDEM_SUCCESS)
      std::printf("PE %d: %s\n", pe, tandem_last_error());
    tandem_world_destroy(world);
  }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

 private:
  void number() {
    pe = tandem_pe(world);
    n = tandem_num_pes(world);
  }

  int exceptions_before_ = std::uncaught_exceptions();
};

inline void check_all_reduce(const Joined& all, cudaStream_t stream) {
  const Memory data(Words(1003, static_cast<unsigned>(all.pe) + 1));
  well(tandem_all_reduce(all.world, data.at(), data.at(), 1003, TANDEM_U32, TANDEM_SUM, stream));
  well(tandem_synchronize(all.world, stream));
  expect(data.contents() == Words(1003, static_cast<unsigned>(all.n * (all.n + 1) / 2)), "the sum");
}

}  // namespace tandem::test
