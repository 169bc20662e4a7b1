#pragma once
/// The layers that the benchmarks of GEMMs and overlapped operators go through: global problems (m, n, k).

#include <array>

#include "tandem/range.h"

namespace tandem::bench {

struct Layer {
  const char* name;
  Size m, n, k;
};

/// Llama-3 feed-forward and attention layers of three sizes, the shape of Triton-distributed's tutorial 07, and a small
/// batch. The PEs divide n in all_gather_gemm, and k in gemm_reduce_scatter.
inline constexpr std::array<Layer, 7> kGatherLayers{{{"tutorial07", 8192, 49152, 12288},
                                                     {"llama3-8b:ffn_up", 8192, 28672, 4096},
                                                     {"llama3-70b:qkv", 8192, 10240, 8192},
                                                     {"llama3-70b:ffn_up", 8192, 57344, 8192},
                                                     {"llama3-405b:qkv", 8192, 18432, 16384},
                                                     {"llama3-405b:ffn_up", 8192, 106496, 16384},
                                                     {"small_m", 1024, 57344, 8192}}};
inline constexpr std::array<Layer, 6> kScatterLayers{{{"tutorial07", 8192, 12288, 49152},
                                                      {"llama3-8b:ffn_down", 8192, 4096, 14336},
                                                      {"llama3-70b:ffn_down", 8192, 8192, 28672},
                                                      {"llama3-70b:o", 8192, 8192, 8192},
                                                      {"llama3-405b:ffn_down", 8192, 16384, 53248},
                                                      {"small_m", 1024, 8192, 28672}}};
/// gemm_all_reduce: k is split. Decoding has as many rows as there are sequences.
inline constexpr std::array<Layer, 7> kAllReduceLayers{{{"llama3-70b:o", 8192, 8192, 8192},
                                                        {"llama3-70b:ffn_down", 8192, 8192, 28672},
                                                        {"decode", 1, 8192, 28672},
                                                        {"decode", 16, 8192, 28672},
                                                        {"decode", 64, 8192, 28672},
                                                        {"decode", 128, 8192, 28672},
                                                        {"decode", 256, 8192, 28672}}};

}  // namespace tandem::bench
