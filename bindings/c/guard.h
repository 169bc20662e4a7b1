#pragma once
/// What all functions of the C API have in common: handles, and no exception that leaves the library.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "tandem.h"
#include "tandem/error.h"
#include "world.h"

struct tandem_world {
  tandem::c::CWorld world;
  int plans = 0;  ///< made on it and not destroyed
};

namespace tandem::c {

/// Of this thread.
std::string& last_error();

inline tandem_status keep(tandem_status status, const char* text) {
  last_error() = text;
  return status;
}

template <class Work>
tandem_status guarded(Work work) {
  try {
    last_error().clear();
    work();
    return TANDEM_SUCCESS;
  } catch (const InvalidArgument& error) {
    return keep(TANDEM_INVALID_ARGUMENT, error.what());
  } catch (const CheckFailed& error) {
    return keep(TANDEM_INVALID_ARGUMENT, error.what());
  } catch (const Unsupported& error) {
    return keep(TANDEM_UNSUPPORTED, error.what());
  } catch (const OutOfMemory& error) {
    return keep(TANDEM_OUT_OF_MEMORY, error.what());
  } catch (const Timeout& error) {
    return keep(TANDEM_TIMEOUT, error.what());
  } catch (const std::bad_alloc&) {
    return keep(TANDEM_OUT_OF_MEMORY, "out of memory on the host");
  } catch (const std::exception& error) {
    return keep(TANDEM_FAILED, error.what());
  }
}

template <class T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr) throw InvalidArgument(fmt::format("{}: NULL given, allowed is an address", what));
  return *pointer;
}

/// `value`, of one of C's enumerations of `first` to `last`.
template <class E>
E one_of(E value, E first, E last, const char* what, const char* type) {
  if (value < first || value > last)
    throw InvalidArgument(fmt::format("{}: {} given, allowed is a {}, {} to {}", what, static_cast<int>(value), type,
                                      static_cast<int>(first), static_cast<int>(last)));
  return value;
}

inline DType type_of(tandem_dtype type, const char* what = "type") {
  return static_cast<DType>(one_of(type, TANDEM_F32, TANDEM_F64, what, "tandem_dtype") - TANDEM_F32);
}

/// Sizes as C gives them. Sums and products of what is allowed do not overflow.
inline Size size_of_c(std::size_t given, const char* what) {
  constexpr std::size_t kMost = std::size_t{1} << 46;
  if (given > kMost)
    throw InvalidArgument(
        fmt::format("{}: {} given, allowed is at most {}, more than any memory holds", what, given, kMost));
  return static_cast<Size>(given);
}

/// The handles of one kind that are there: made, and not yet destroyed.
template <class T>
class Handles {
 public:
  explicit Handles(const char* kind) : kind_(kind) {}

  T* keep(std::unique_ptr<T> made) {
    const std::lock_guard lock(mutex_);
    all_.push_back(made.get());
    return made.release();
  }
  bool has(const T* handle) const {
    const std::lock_guard lock(mutex_);
    return std::find(all_.begin(), all_.end(), handle) != all_.end();
  }
  T& at(T* handle, const char* what) const {
    if (has(handle)) return *handle;
    throw InvalidArgument(fmt::format("{}: {} given, allowed is a {} that was made and not destroyed", what,
                                      handle == nullptr ? "NULL" : fmt::to_string(fmt::ptr(handle)), kind_));
  }
  /// The caller's from here on.
  std::unique_ptr<T> take(T* handle, const char* what) {
    std::unique_ptr<T> taken(&at(handle, what));
    const std::lock_guard lock(mutex_);
    all_.erase(std::find(all_.begin(), all_.end(), handle));
    return taken;
  }

 private:
  const char* kind_;
  mutable std::mutex mutex_;
  std::vector<T*> all_;
};

Handles<tandem_world>& worlds();

inline CWorld& world_of(tandem_world* world) { return worlds().at(world, "world").world; }

}  // namespace tandem::c
