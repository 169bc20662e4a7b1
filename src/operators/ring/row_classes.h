#pragma once
/// Signals that count tiles grow by the same number in each call as long as pieces have the same number of tiles. Runs
/// of other rows have their own words and their own counter of calls. Numbers of rows whose pieces all have the same
/// number of panels of tiles form one class.

#include <map>
#include <vector>

#include "tandem/advanced/gemm.h"

namespace tandem::ops {

class RowClasses {
 public:
  /// For runs of up to `largest.rows` rows, partitioned likewise, with tiles of `tile_m` rows.
  RowClasses(RowPartition largest, int tile_m) {
    std::map<std::vector<Size>, int> known;
    const Size most = largest.rows;
    of_rows_.reserve(static_cast<std::size_t>(most + 1));
    for (Size rows = 0; rows <= most; ++rows) {
      largest.rows = rows;
      std::vector<Size> panels;
      for (int owner = 0; owner < largest.shards; ++owner)
        for (int part = 0; part < largest.splits; ++part)
          panels.push_back(ceil_div(largest.part(owner, part).size(), tile_m));
      of_rows_.push_back(known.emplace(std::move(panels), count()).first->second);
      count_ = static_cast<int>(known.size());
    }
  }

  int of(Size rows) const { return of_rows_[static_cast<std::size_t>(rows)]; }
  int count() const { return count_; }

 private:
  int count_ = 0;
  std::vector<int> of_rows_;
};

}  // namespace tandem::ops
