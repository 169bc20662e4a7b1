#pragma once
/// Common parts of all functions of the C API: handles, and a guard that keeps exceptions within the library.

#include <fmt/format.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "tandem.h"
#include "tandem/error.h"
#include "world.h"
#include "world/device/devices.h"

struct tandem_world {
  tandem::c::CWorld world;
  int plans = 0;  ///< made on it and not destroyed
};

namespace tandem::c {

/// The last error of this thread.
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

/// A truth value as C gives it.
inline bool flag(int value, const char* what) {
  if (value != 0 && value != 1) throw InvalidArgument(fmt::format("{}: {} given, allowed is 0 or 1", what, value));
  return value == 1;
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

/// The existing handles of one kind: made and not yet destroyed. Handles that exist when the process ends are not
/// destroyed.
template <class T>
class Handles {
  struct State {
    int uses = 0;
    bool is_ending = false;  ///< somebody destroys it
    bool is_over = false;    ///< and waits for its uses alone
  };

 public:
  /// A call with a handle: until it ends, what the handle stands for is not destroyed.
  class Use {
   public:
    Use(Handles& all, T* handle, const char* what, bool at_the_end) : all_(all), handle_(handle) {
      const std::lock_guard lock(all_.mutex_);
      ++all_.find(handle, what, at_the_end).uses;
    }
    ~Use() {
      const std::lock_guard lock(all_.mutex_);
      if (--all_.all_.at(handle_).uses == 0) all_.unused_.notify_all();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    T& operator*() const { return *handle_; }
    T* operator->() const { return handle_; }

   private:
    Handles& all_;
    T* handle_;
  };

  explicit Handles(const char* kind) : kind_(kind) {}

  T* keep(std::unique_ptr<T> made) {
    const std::lock_guard lock(mutex_);
    all_[made.get()] = {};
    return made.release();
  }
  bool has(const T* handle) const {
    const std::lock_guard lock(mutex_);
    return all_.count(handle) != 0;
  }
  Use at(T* handle, const char* what) { return {*this, handle, what, false}; }
  /// Also while another thread destroys it, up to the end of `last`.
  Use at_the_end(T* handle, const char* what) { return {*this, handle, what, true}; }
  /// Destroys it when all its uses have ended, and `last(*handle)` has, which throws nothing.
  template <class Last>
  void destroy(T* handle, const char* what, const Last& last) {
    std::unique_lock lock(mutex_);
    find(handle, what, false).is_ending = true;
    lock.unlock();
    last(*handle);
    lock.lock();
    all_.at(handle).is_over = true;
    unused_.wait(lock, [&] { return all_.at(handle).uses == 0; });
    all_.erase(handle);
    lock.unlock();
    delete handle;
  }

 private:
  State& find(T* handle, const char* what, bool at_the_end) {
    const auto found = all_.find(handle);
    if (found != all_.end() && !(at_the_end ? found->second.is_over : found->second.is_ending)) return found->second;
    throw InvalidArgument(fmt::format("{}: {} given, allowed is a {} that was made and not destroyed", what,
                                      handle == nullptr ? "NULL" : fmt::to_string(fmt::ptr(handle)), kind_));
  }

  const char* kind_;
  mutable std::mutex mutex_;
  std::condition_variable unused_;
  std::map<const T*, State> all_;
};

Handles<tandem_world>& worlds();

/// Makes the device current for what destroys; none where it is lost, which nothing has to be waited for.
inline std::unique_ptr<world::CurrentDevice> current_unless_lost(const CWorld& on) {
  try {
    return std::make_unique<world::CurrentDevice>(world::devices_of(on.kind()), on.device());
  } catch (const RuntimeFailure&) {
    return nullptr;
  }
}

/// A world while a call uses it, with its device current on this thread.
class InWorld {
 public:
  explicit InWorld(tandem_world* world)
      : use_(worlds().at(world, "world")), current_(world::devices_of(use_->world.kind()), use_->world.device()) {}
  CWorld& operator*() const { return use_->world; }
  CWorld* operator->() const { return &use_->world; }
  tandem_world& handle() const { return *use_; }

 private:
  Handles<tandem_world>::Use use_;
  world::CurrentDevice current_;
};

}  // namespace tandem::c
