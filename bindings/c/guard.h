#pragma once
/// What all functions of the C API have in common: handles, and no exception that leaves the library.

#include <new>
#include <string>

#include "tandem.h"
#include "tandem/error.h"
#include "world.h"

struct tandem_world {
  tandem::c::CWorld world;
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
  if (pointer == nullptr) throw InvalidArgument(std::string(what) + ": NULL given");
  return *pointer;
}

inline DType type_of(tandem_dtype type) {
  if (type < TANDEM_F32 || type > TANDEM_F64) throw InvalidArgument("type: no tandem_dtype given");
  return static_cast<DType>(type);
}

}  // namespace tandem::c
