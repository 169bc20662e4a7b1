#include "tandem/numeric.h"

#include <string>

#include "tandem/error.h"
#include "tandem/reduce_op.h"

namespace tandem {
namespace {

template <class Enum, std::size_t kCount>
Enum parse(const char* what, std::string_view text, const Enum (&all)[kCount]) {
  std::string allowed;
  for (const Enum value : all) {
    if (text == name(value)) return value;
    if (!allowed.empty()) allowed += ", ";
    allowed += name(value);
  }
  throw InvalidArgument(std::string(what) + ": '" + std::string(text) + "' given, allowed are " + allowed);
}

}  // namespace

const char* name(DType type) {
  switch (type) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kE4M3:
      return "fp8_e4m3";
    case DType::kE5M2:
      return "fp8_e5m2";
    case DType::kI8:
      return "i8";
    case DType::kU8:
      return "u8";
    case DType::kI32:
      return "i32";
    case DType::kU32:
      return "u32";
    case DType::kI64:
      return "i64";
    case DType::kU64:
      return "u64";
    case DType::kF64:
      return "f64";
  }
  return "unknown";
}

DType parse_dtype(std::string_view text) { return parse("dtype", text, kDTypes); }

const char* name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kProd:
      return "prod";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kAvg:
      return "avg";
    case ReduceOp::kPremulSum:
      return "premul_sum";
  }
  return "unknown";
}

ReduceOp parse_reduce_op(std::string_view text) { return parse("reduce_op", text, kReduceOps); }

}  // namespace tandem
