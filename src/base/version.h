#pragma once
/// Which version of the library this is.

namespace tandem {

/// The project's, "0.1.0": the one place in which sources have it.
const char* version();

}  // namespace tandem
