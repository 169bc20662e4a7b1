// The variables of the environment that this library reads, as NCCL's parameters.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "base/log.h"
#include "bindings/nccl/error.h"
#include "bindings/nccl/functions/exports.h"

struct ncclParamHandle {
  const char* key;
};

namespace {

using tandem::InvalidArgument;
using tandem::nccl::given;
using tandem::nccl::guarded;

std::array<ncclParamHandle, 7>& parameters() {
  static std::array<ncclParamHandle, 7> all{{{"NCCL_DEBUG"},
                                             {"NCCL_DEBUG_FILE"},
                                             {"NCCL_SOCKET_IFNAME"},
                                             {"TANDEM_DEVICE"},
                                             {"TANDEM_LOG"},
                                             {"TANDEM_NCCL_FALLBACK"},
                                             {"TANDEM_NCCL_VERSION"}}};
  return all;
}

ncclParamHandle& parameter(const char* key) {
  given(key, "key");
  for (ncclParamHandle& one : parameters())
    if (std::string_view(one.key) == key) return one;
  throw InvalidArgument(
      fmt::format("key: '{}' given, allowed is a variable that ncclParamGetAllParameterKeys lists", key));
}

/// Throws InvalidArgument unless a bind gave the handle.
const ncclParamHandle& checked(ncclParamHandle_t handle) {
  for (const ncclParamHandle& one : parameters())
    if (&one == handle) return one;
  throw InvalidArgument("h: an unknown handle given, allowed is one of ncclParamBind");
}

/// Returns the value in the environment; empty if there is none.
std::string_view value_of(const ncclParamHandle& parameter) {
  const char* const text = std::getenv(parameter.key);
  return text != nullptr ? text : "";
}

template <class T>
ncclResult_t number(ncclParamHandle_t handle, T* out) {
  return guarded([&] {
    const ncclParamHandle& one = checked(handle);
    given(out, "out") = 0;
    const std::string_view text = value_of(one);
    T value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      throw InvalidArgument(fmt::format("{}: '{}' given, allowed for this function are {} to {}", one.key, text,
                                        std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    *out = value;
    return ncclSuccess;
  });
}

/// Returns a copy that this thread keeps until the next call of the same function.
const char* kept(std::string& place, std::string_view text) {
  place = text;
  return place.c_str();
}

}  // namespace

TANDEM_NCCL_EXPORT(ParamBind);
ncclResult_t pncclParamBind(ncclParamHandle_t* handle, const char* key) {
  return guarded([&] {
    given(handle, "out") = nullptr;
    *handle = &parameter(key);
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(ParamGetI8);
ncclResult_t pncclParamGetI8(ncclParamHandle_t handle, std::int8_t* value) { return number(handle, value); }

TANDEM_NCCL_EXPORT(ParamGetI16);
ncclResult_t pncclParamGetI16(ncclParamHandle_t handle, std::int16_t* value) { return number(handle, value); }

TANDEM_NCCL_EXPORT(ParamGetI32);
ncclResult_t pncclParamGetI32(ncclParamHandle_t handle, std::int32_t* value) { return number(handle, value); }

TANDEM_NCCL_EXPORT(ParamGetI64);
ncclResult_t pncclParamGetI64(ncclParamHandle_t handle, std::int64_t* value) { return number(handle, value); }

TANDEM_NCCL_EXPORT(ParamGetU8);
ncclResult_t pncclParamGetU8(ncclParamHandle_t handle, std::uint8_t* value) { return number(handle, value); }

TANDEM_NCCL_EXPORT(ParamGetU16);
ncclResult_t pncclParamGetU16(ncclParamHandle_t handle, std::uint16_t* value) { return number(handle, value); }

TANDEM_NCCL_EXPORT(ParamGetU32);
ncclResult_t pncclParamGetU32(ncclParamHandle_t handle, std::uint32_t* value) { return number(handle, value); }

TANDEM_NCCL_EXPORT(ParamGetU64);
ncclResult_t pncclParamGetU64(ncclParamHandle_t handle, std::uint64_t* value) { return number(handle, value); }

TANDEM_NCCL_EXPORT(ParamGetStr);
ncclResult_t pncclParamGetStr(ncclParamHandle_t handle, const char** value) {
  return guarded([&] {
    thread_local std::string text;
    given(value, "out") = kept(text, value_of(checked(handle)));
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(ParamGet);
ncclResult_t pncclParamGet(ncclParamHandle_t handle, void* value, int most, int* length) {
  return guarded([&] {
    const std::string_view text = value_of(checked(handle));
    given(static_cast<char*>(value), "out");
    if (most < 0 || static_cast<std::size_t>(most) < text.size())
      throw InvalidArgument(fmt::format("maxLen: {} given, allowed is at least {}", most, text.size()));
    std::memcpy(value, text.data(), text.size());
    if (length != nullptr) *length = static_cast<int>(text.size());
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(ParamGetParameter);
ncclResult_t pncclParamGetParameter(const char* key, const char** value, int* length) {
  return guarded([&] {
    thread_local std::string text;
    given(value, "value") = kept(text, value_of(parameter(key)));
    if (length != nullptr) *length = static_cast<int>(text.size());
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(ParamGetAllParameterKeys);
ncclResult_t pncclParamGetAllParameterKeys(const char*** table, int* length) {
  return guarded([&] {
    thread_local std::array<const char*, std::tuple_size_v<std::remove_reference_t<decltype(parameters())>>> keys;
    std::transform(parameters().begin(), parameters().end(), keys.begin(), [](const auto& one) { return one.key; });
    given(table, "table") = keys.data();
    given(length, "tableLen") = static_cast<int>(keys.size());
    return ncclSuccess;
  });
}

TANDEM_NCCL_EXPORT(ParamDumpAll);
void pncclParamDumpAll() {
  for (const ncclParamHandle& one : parameters())
    tandem::process_log().write(tandem::LogLevel::kWarn, fmt::format("{}={}", one.key, value_of(one)));
}
