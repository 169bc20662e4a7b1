#pragma once
/// Values of options: sizes, shapes, layers of models.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/error.h"
#include "tandem/range.h"

namespace tandem::cli {

/// Returns `message` with `option` in front, in place of `name` where it begins with that.
std::string with_option(const char* option, std::string_view name, std::string_view message);

/// Calls `use` for the value of an option, which the library calls `name`. Its errors then name the option.
template <class F>
auto for_option(const char* option, std::string_view name, const F& use) {
  try {
    return use();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(with_option(option, name, error.what()));
  }
}

/// Parses decimal digits, optionally after a minus. Returns nothing for anything else, and beyond 32 bits.
std::optional<int> whole_number(std::string_view text);

/// Parses "16M" as 16777216: a whole number from 0, optionally with K, M or G (powers of 1024, as in nccl-tests), or
/// with KiB, MiB or GiB. KB, MB and GB are refused, because some use them for powers of 1000. Throws InvalidArgument
/// with the name of `option`.
Size parse_size(const char* option, const std::string& text);

/// The global problem of an operator.
struct Shape {
  Size m = 0, n = 0, k = 0;

  std::string text() const;  ///< "512x14336x4096"
};

/// Parses "512x14336x4096". M and N are 0 or more, K is 1 or more. Throws InvalidArgument with the name of `option`.
Shape parse_shape(const char* option, const std::string& text);

/// Parses "128x256" as {m, n}, each 1 or more. Throws InvalidArgument with the name --tile.
struct TileSize {
  int m = 0, n = 0;
};
TileSize parse_tile(const std::string& text);

/// A layer of a model: the product of `rows` activations with the layer's weights, with N outputs and K inputs.
struct Layer {
  std::string name;     ///< "llama3-8b:ffn_up"
  std::string meaning;  ///< "gate and up projection in one"
  Size n = 0, k = 0;
};
/// The default rows of a layer.
inline constexpr Size kModelRows = 8192;

/// The layers of --model.
const std::vector<Layer>& layers();
/// Throws InvalidArgument with the list of names.
Shape layer_shape(const std::string& name);

}  // namespace tandem::cli
