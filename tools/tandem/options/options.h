#pragma once
/// The values of options: sizes, shapes, layers of models.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/range.h"

namespace tandem::cli {

/// Decimal digits, perhaps behind a minus; nothing for anything else, and beyond 32 bits.
std::optional<int> whole_number(std::string_view text);

/// "16M" -> 16777216. A whole number, 0 or more, perhaps with K, M or G (powers of 1024, as nccl-tests has them), or
/// with KiB, MiB or GiB. KB, MB and GB are refused: for some they are powers of 1000.
/// Throws InvalidArgument naming `option`.
Size parse_size(const char* option, const std::string& text);

/// A global problem of an operator.
struct Shape {
  Size m = 0, n = 0, k = 0;

  std::string text() const;  ///< "512x14336x4096"
};

/// "512x14336x4096". M and N are 0 or more, K is 1 or more. Throws InvalidArgument naming `option`.
Shape parse_shape(const char* option, const std::string& text);

/// "128x256" -> {m, n}, each 1 or more. Throws InvalidArgument naming --tile.
struct TileSize {
  int m = 0, n = 0;
};
TileSize parse_tile(const std::string& text);

/// A layer of a model as the product of `rows` activations with the layer's weights: N outputs, K inputs.
struct Layer {
  std::string name;     ///< "llama3-8b:ffn_up"
  std::string meaning;  ///< "gate and up projection in one"
  Size n = 0, k = 0;
};
/// Rows of a layer where the user gives none.
inline constexpr Size kModelRows = 8192;

/// The layers that --model knows.
const std::vector<Layer>& layers();
/// Throws InvalidArgument that lists the names.
Shape layer_shape(const std::string& name);

}  // namespace tandem::cli
