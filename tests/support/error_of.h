#pragma once
/// The error that work ends with.

#include <exception>
#include <string>

namespace tandem::test {

/// Returns the text of the error of type E that `work` throws, or another text if it throws none or another one.
template <class E, class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

}  // namespace tandem::test
