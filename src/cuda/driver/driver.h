#pragma once
/// The driver's functions that the library uses, found at run time. Nothing links against libcuda, so that a binary
/// starts without a driver and can report that.

#include "base/cuda_names.h"

namespace tandem::cuda {

struct Driver {
  decltype(&cuMemAddressReserve) mem_address_reserve;
  decltype(&cuMemAddressFree) mem_address_free;
  decltype(&cuMemCreate) mem_create;
  decltype(&cuMemRelease) mem_release;
  decltype(&cuMemMap) mem_map;
  decltype(&cuMemUnmap) mem_unmap;
  decltype(&cuMemSetAccess) mem_set_access;
  decltype(&cuMemGetAllocationGranularity) mem_granularity;
  decltype(&cuMemExportToShareableHandle) mem_export;
  decltype(&cuMemImportFromShareableHandle) mem_import;
  decltype(&cuMemRetainAllocationHandle) mem_retain;
  decltype(&cuMemGetAllocationPropertiesFromHandle) mem_properties;
  decltype(&cuMemGetAddressRange) mem_range;
  decltype(&cuDeviceGetAttribute) device_attribute;
  decltype(&cuDevicePrimaryCtxRetain) primary_context_retain;
  decltype(&cuDevicePrimaryCtxRelease) primary_context_release;
  decltype(&cuCtxPushCurrent) context_push;
  decltype(&cuCtxPopCurrent) context_pop;
  decltype(&cuStreamWriteValue64) stream_write_value;
  decltype(&cuTensorMapEncodeTiled) tensor_map_encode_tiled;
  decltype(&cuGetErrorString) error_string;
};

/// Throws Unsupported if the machine has no driver, or one that is too old.
const Driver& driver();

}  // namespace tandem::cuda
