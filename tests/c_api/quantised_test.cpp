// Collectives with codes of 8 bits through the C API.
#include <gtest/gtest.h>

#include <algorithm>

#include "c_api/simulated/process.h"

namespace tandem::test {
namespace {

constexpr size_t kCount = 300;

/// Equal values have the greatest code, so only the rounding of the scale is left.
TEST(Quantised, SumsAndPartsAreRight) {
  run_in_c(2, [](CPeer& peer) {
    float *in = nullptr, *out = nullptr;
    for (float** const buffer : {&in, &out})
      EXPECT_EQ(unlike(tandem_alloc(peer.world, 2 * kCount * 4, reinterpret_cast<void**>(buffer)), TANDEM_SUCCESS), "");
    for (const tandem_wire wire : {TANDEM_WIRE_FP8, TANDEM_WIRE_INT8}) {
      const auto run = [&](auto call) {
        std::fill_n(in, 2 * kCount, 64.0F);
        std::fill_n(out, 2 * kCount, 0.0F);
        EXPECT_EQ(unlike(call(peer.world, in, out, kCount, TANDEM_F32, wire, peer.stream), TANDEM_SUCCESS), "");
        EXPECT_EQ(unlike(tandem_synchronize(peer.world, peer.stream), TANDEM_SUCCESS), "");
        return out[kCount - 1];
      };
      EXPECT_NEAR(run(tandem_all_reduce_quantised), 128, 0.02);
      EXPECT_NEAR(run(tandem_reduce_scatter_quantised), 128, 0.02);
      EXPECT_NEAR(run(tandem_all_gather_quantised), 64, 0.01);
      EXPECT_NEAR(out[2 * kCount - 1], 64, 0.01);
    }
  });
}

TEST(Quantised, WrongArgumentsAreNamed) {
  run_in_c(2, [](CPeer& peer) {
    float x[4] = {};
    const auto refused = [&](tandem_dtype type, int wire, const char* part) {
      return unlike(tandem_all_reduce_quantised(peer.world, x, x, 4, type, static_cast<tandem_wire>(wire), peer.stream),
                    TANDEM_INVALID_ARGUMENT, part);
    };
    EXPECT_EQ(refused(TANDEM_F32, 0, "wire: 0 given, allowed is a tandem_wire, 1 to 2"), "");
    EXPECT_EQ(refused(TANDEM_I32, TANDEM_WIRE_FP8, "type: i32 given to all_reduce with fp8 on the wire"), "");
  });
}

}  // namespace
}  // namespace tandem::test
