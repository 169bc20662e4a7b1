// Data of the collectives that only move bytes: random bits, compared bit for bit.
#include <algorithm>
#include <cstring>

#include "tools/tandem/data/collective_data_kinds.h"
#include "tools/tandem/data/data.h"
#include "tools/tandem/data/verification.h"
#include "tools/tandem/options/parallel.h"

namespace tandem::cli {
namespace {

constexpr Size kFilledBytes = 1 << 16;

/// Writes the bytes [begin, begin + bytes) of the input of `pe`.
void random_bytes(std::uint64_t seed, int pe, Size begin, std::byte* to, Size bytes) {
  for (Size i = 0; i < bytes;) {
    const Size at = begin + i;
    const std::uint64_t word = random_bits(seed, static_cast<std::uint64_t>(pe), static_cast<std::uint64_t>(at / 8));
    const Size offset = at % 8;
    const Size n = std::min(8 - offset, bytes - i);
    std::memcpy(to + i, reinterpret_cast<const std::byte*>(&word) + offset, static_cast<std::size_t>(n));
    i += n;
  }
}

class MovedData final : public CollectiveData {
 public:
  explicit MovedData(const CollectiveCall& call) : CollectiveData(call), element_(size_of(call.type)) {}

  void fill_input(int pe, std::byte* in) const override {
    const Size bytes = input_elements(call_.collective, call_.count, call_.pes, pe, call_.root) * element_;
    for_chunks(bytes, kFilledBytes,
               [&](Range piece) { random_bytes(call_.seed, pe, piece.begin, in + piece.begin, piece.size()); });
  }

  void check_part(int pe, Range part, const std::byte* out, Check& check) const override {
    check.expectation = "bit for bit";
    VerificationSum sum(check);
    for (Size at = part.begin; at < part.end;) {
      const Size chunk = at / call_.count;
      const Size end = std::min(part.end, (chunk + 1) * call_.count);
      const CollectiveSource source = source_of(pe, chunk * call_.count);
      for_chunks(end - at, kFilledBytes / element_, [&](Range piece) {
        const Size first = at + piece.begin;
        const Size in_chunk = first - chunk * call_.count;
        sum.add(compare(source, {in_chunk, in_chunk + piece.size()}, out + (first - part.begin) * element_));
      });
      at = end;
    }
  }

 private:
  Verification compare(const CollectiveSource& source, Range piece, const std::byte* out) const {
    const Size bytes = piece.size() * element_;
    std::vector<std::byte> expected(static_cast<std::size_t>(bytes));
    random_bytes(call_.seed, source.first, (source.index + piece.begin) * element_, expected.data(), bytes);
    Verification verification;
    verification.checked = piece.size();
    if (std::memcmp(expected.data(), out, expected.size()) == 0) return verification;
    for (Size i = 0; i < bytes; i += element_)
      verification.wrong += std::memcmp(expected.data() + i, out + i, static_cast<std::size_t>(element_)) != 0 ? 1 : 0;
    verification.max_error = std::numeric_limits<double>::infinity();  // random bits have no numeric error
    return verification;
  }

  Size element_;
};

}  // namespace

std::unique_ptr<CollectiveData> make_moved_data(const CollectiveCall& call) {
  return std::make_unique<MovedData>(call);
}

}  // namespace tandem::cli
