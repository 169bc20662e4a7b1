#pragma once
/// Every call of NCCL's interface, in a process that is one rank.

#include <string>
#include <vector>

#include "support/nccl_case.h"

namespace tandem::nccl_test {

/// The calls of one rank on memory of this process.
class EveryCall {
 public:
  EveryCall(ncclComm_t comm, int rank, int ranks) : library_("libnccl.so.2"), me_{rank, comm, nullptr}, ranks_(ranks) {}

  /// Makes them and returns how many were right, or the name of the first that was wrong.
  std::string run() {
    using namespace check;
    constexpr std::size_t kBeyondAPiece = (std::size_t{4} << 20U) / 4 + 1;
    int root = 0;
    for (const Kind kind : kKinds) {
      for (int type = 0; type < ncclNumTypes; ++type) {
        for (int op = 0; op < (Case{kind}.reduces() ? 5 : 1); ++op) {
          Case c{kind, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), 37};
          c.root = root++ % ranks_;
          if (c.is_exact(ranks_)) one(c);
        }
      }
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1037}, kBeyondAPiece}) {
        if (count == kBeyondAPiece && ranks_ != 2) continue;  // more ranks take long on few processors
        const bool may_share = kind != Kind::AlltoAll && kind != Kind::Ring && kind != Kind::Bcast;
        for (int in_place = 0; in_place <= int{may_share}; ++in_place) {
          one({kind, ncclFloat32, ncclSum, count, in_place != 0, root++ % ranks_});
        }
      }
    }
    return wrong_.empty() ? std::to_string(right_) + " right" : "wrong: " + wrong_;
  }

 private:
  void one(const check::Case& c) {
    using namespace check;
    const std::size_t element = bytes_of(c.type);
    const std::size_t all = c.count * static_cast<std::size_t>(ranks_) * element + 1;
    std::vector<char> in(all), other(all), wanted(c.outputs(me_.number, ranks_) * element);
    char* const from = c.in_place ? input_in_place(c, me_.number, in.data()) : in.data();
    char* const to = c.in_place ? output_in_place(c, me_.number, in.data()) : other.data();
    encode_input(c, me_.number, ranks_, 0, c.kind == Kind::Bcast && me_.number == c.root ? to : from);
    issue(library_, c, me_, ranks_, from, to);
    encode_result(c, me_.number, ranks_, 0, wanted.data());
    const bool well = std::equal(wanted.begin(), wanted.end(), to);
    right_ += int{well};
    if (!well && wrong_.empty()) wrong_ = c.name();
  }

  check::NcclLibrary library_;
  check::Member me_;
  int ranks_;
  int right_ = 0;
  std::string wrong_;
};

}  // namespace tandem::nccl_test
