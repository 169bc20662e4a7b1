#pragma once
/// Layers of a model under tensor parallelism: plans of several operators, each of which reads the result of the
/// previous one. Checks compare their bits with those of the same runs one by one.

#include <cmath>
#include <functional>
#include <vector>

#include "tandem/advanced/transport_memory.h"
#include "tandem/numeric.h"
#include "tandem/operators.h"
#include "tandem/world.h"

namespace tandem::cli {

/// Two layers on one PE. There are `width` columns outside, and `hidden` columns between the two products of a layer:
///
///   x (its rows) -- all_gather_gemm --> h (its columns) -- gemm_all_reduce -----> y (all)
///   y (its rows) -- all_gather_gemm --> h (its columns) -- gemm_reduce_scatter --> x (its rows)
template <class T>
class Layers {
 public:
  struct Sizes {
    Size rows, width, hidden;
  };
  /// Options of each operator. Their m, n, k and type are ignored; the layers set them.
  struct Options {
    OperatorOptions gather, reduce, scatter;
    bool shares_memory = false;  // the three plans share transport memory
  };

  Layers(World& world, const Sizes& sizes, Options options)
      : team_(world.team()),
        sizes_(sizes),
        columns_(split(sizes.hidden, team_.size)[team_.me].size()),
        x_(local(world, rows_of(sizes.rows).size() * sizes.width, "x")),
        y_(local(world, sizes.rows * sizes.width, "y")),
        h_(local(world, sizes.rows * columns_, "h")),
        up_(weights(world, sizes.width, "up")),
        down_(weights(world, sizes.hidden, "down")) {
    const auto memory = options.shares_memory ? std::make_shared<TransportMemory>(world) : nullptr;
    const auto make = [&](Operator op, OperatorOptions o, Size n, Size k) {
      o.memory = memory;
      o.m = sizes.rows;
      o.n = n;
      o.k = k;
      o.type = dtype_of<T>();
      return make_operator(world, op, o);
    };
    gather_ = make(Operator::kAllGatherGemm, options.gather, sizes.hidden, sizes.width);
    reduce_ = make(Operator::kGemmAllReduce, options.reduce, sizes.width, sizes.hidden);
    scatter_ = make(Operator::kGemmReduceScatter, options.scatter, sizes.width, sizes.hidden);
  }

  /// Runs both layers with `rows` rows. `between` is called between two operators.
  void enqueue(
      Stream& stream, Size rows, const std::function<void()>& between = [] {}) {
    gather_->run(stream, rows, x_, up_, h_);
    between();
    reduce_->run(stream, rows, h_, down_, y_);
    between();
    gather_->run(stream, rows, y_ + rows_of(rows).begin * sizes_.width, up_, h_);
    between();
    scatter_->run(stream, rows, h_, down_, x_);
    between();
  }

  T* x() const { return x_; }
  /// Returns the elements of this PE's part of x or y in a run of `rows` rows.
  Size x_elements(Size rows) const { return rows_of(rows).size() * sizes_.width; }
  /// Returns an input that differs between PEs.
  std::vector<T> input(std::uint32_t seed) const {
    return values(x_elements(sizes_.rows), 1, seed * 64 + static_cast<std::uint32_t>(team_.me));
  }

 private:
  Range rows_of(Size rows) const { return split(rows, team_.size)[team_.me]; }
  static T* local(World& world, Size elements, const char* what) {
    return world.heap().allocate_local<T>(elements, what);
  }

  /// Returns random values of -1, 0 or 1 times `scale`.
  static std::vector<T> values(Size count, float scale, std::uint32_t seed) {
    std::vector<T> all(static_cast<std::size_t>(count));
    std::uint32_t state = seed * 2654435761U + 1;
    for (T& one : all) {
      state = state * 1664525U + 1013904223U;
      one = convert<T>(scale * static_cast<float>(static_cast<int>((state >> 16) % 3) - 1));
    }
    return all;
  }

  /// Returns random weights for products of depth `depth`, scaled so that results have the size of the inputs.
  T* weights(World& world, Size depth, const char* what) const {
    const Size count = sizes_.width * columns_;
    const std::vector<T> host =
        values(count, std::sqrt(1.5F / static_cast<float>(depth)), static_cast<std::uint32_t>(depth * 64 + team_.me));
    T* const there = local(world, count, what);
    world.copy_in(there, host.data(), count * Size{sizeof(T)});
    return there;
  }

  Team team_;
  Sizes sizes_;
  Size columns_;  // this PE's hidden columns
  T *x_, *y_, *h_, *up_, *down_;
  std::unique_ptr<OperatorPlan> gather_, reduce_, scatter_;
};

}  // namespace tandem::cli
