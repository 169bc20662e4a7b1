#pragma once
/// The version of the library.

namespace tandem {

/// Returns the project's version, such as "0.1.0". This is its only definition in the sources.
const char* version();

}  // namespace tandem
