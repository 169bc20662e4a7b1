#include "tools/tandem/gpu/measure/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "cuda/driver/error.h"
#include "tandem/error.h"

namespace tandem::cli {

namespace {

/// Values of ncclDataType_t.
int nccl_type(DType type) {
  switch (type) {
    case DType::kI8:
      return 0;
    case DType::kU8:
      return 1;
    case DType::kI32:
      return 2;
    case DType::kU32:
      return 3;
    case DType::kI64:
      return 4;
    case DType::kU64:
      return 5;
    case DType::kF16:
      return 6;
    case DType::kF32:
      return 7;
    case DType::kF64:
      return 8;
    case DType::kBF16:
      return 9;
    case DType::kE4M3:
      return 10;
    case DType::kE5M2:
      return 11;
  }
  throw Unsupported("NCCL: no such type");
}

/// Values of ncclRedOp_t.
int nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return 0;
    case ReduceOp::kProd:
      return 1;
    case ReduceOp::kMax:
      return 2;
    case ReduceOp::kMin:
      return 3;
    case ReduceOp::kAvg:
      return 4;
    case ReduceOp::kPremulSum:
      break;
  }
  throw Unsupported(fmt::format("NCCL: no measured counterpart of {}", name(op)));
}

}  // namespace

NcclLibrary::NcclLibrary(const std::string& file) {
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Unsupported(fmt::format("NCCL: {} (--nccl FILE names another)", dlerror()));
  if (auto* const identity = reinterpret_cast<const char* (*)()>(dlsym(library, "tandem_nccl_identity")))
    throw Unsupported(
        fmt::format("NCCL: {} is {}, so Tandem would be compared with itself (--nccl FILE names "
                    "NCCL's own)",
                    file, identity()));
  const auto find = [&](auto& function, const char* name, bool needed = true) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && needed) throw Unsupported(fmt::format("NCCL: {} has no {}", file, name));
  };
  find(get_version, "ncclGetVersion");
  find(error_string, "ncclGetErrorString");
  find(get_unique_id, "ncclGetUniqueId");
  find(init_rank, "ncclCommInitRank");
  find(destroy, "ncclCommDestroy");
  find(group_start, "ncclGroupStart");
  find(group_end, "ncclGroupEnd");
  find(all_reduce, "ncclAllReduce");
  find(all_gather, "ncclAllGather");
  find(reduce_scatter, "ncclReduceScatter");
  find(broadcast, "ncclBroadcast");
  find(reduce, "ncclReduce");
  find(send, "ncclSend");
  find(receive, "ncclRecv");
  find(allocate, "ncclMemAlloc", false);
  find(free, "ncclMemFree", false);
  find(register_window, "ncclCommWindowRegister", false);
  find(deregister_window, "ncclCommWindowDeregister", false);
}

void NcclLibrary::check(int code, const char* what) const {
  if (code != 0) throw RuntimeFailure(fmt::format("NCCL: {}: {}", what, error_string(code)));
}

std::string NcclLibrary::version() const {
  int number = 0;
  check(get_version(&number), "ncclGetVersion");
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

NcclPeer::NcclPeer(const NcclLibrary& library, World& world, Shared& shared) : nccl_(library), pe_(world.pe()) {
  NcclLibrary::UniqueId id{};
  if (pe_ == 0) nccl_.check(nccl_.get_unique_id(&id), "ncclGetUniqueId");
  shared.from_first(id);
  nccl_.check(nccl_.init_rank(&communicator_, world.num_pes(), id, pe_), "ncclCommInitRank");
}

NcclPeer::~NcclPeer() {
  for (const Memory& memory : memory_) {
    if (memory.window != nullptr) {
      nccl_.deregister_window(communicator_, memory.window);
      nccl_.free(memory.address);
    } else {
      cudaFree(memory.address);
    }
  }
  nccl_.destroy(communicator_);
}

void* NcclPeer::allocate(NcclBuffers kind, Size bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  Memory memory{};
  if (kind == NcclBuffers::kPlain) {
    cuda::check(cudaMalloc(&memory.address, size), "cudaMalloc");
    memory_.push_back(memory);
    return memory.address;
  }
  constexpr int symmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC
  if (nccl_.allocate == nullptr || nccl_.free == nullptr || nccl_.register_window == nullptr ||
      nccl_.deregister_window == nullptr)
    throw Unsupported(fmt::format("NCCL {} has no symmetric windows", nccl_.version()));
  nccl_.check(nccl_.allocate(&memory.address, size), "ncclMemAlloc");
  const int code = nccl_.register_window(communicator_, memory.address, size, &memory.window, symmetric);
  if (code != 0 || memory.window == nullptr) {
    nccl_.free(memory.address);
    throw Unsupported(fmt::format("NCCL {} registers no symmetric window here: {}", nccl_.version(),
                                  code != 0 ? nccl_.error_string(code) : "it gave none"));
  }
  memory_.push_back(memory);
  return memory.address;
}

void NcclPeer::run(const CollectiveCall& call, const void* in, void* out, cudaStream_t stream) const {
  const int type = nccl_type(call.type);
  const auto count = static_cast<std::size_t>(call.count);
  switch (call.collective) {
    case Collective::kAllReduce:
      return nccl_.check(nccl_.all_reduce(in, out, count, type, nccl_op(call.op), communicator_, stream),
                         "ncclAllReduce");
    case Collective::kAllGather:
      return nccl_.check(nccl_.all_gather(in, out, count, type, communicator_, stream), "ncclAllGather");
    case Collective::kReduceScatter:
      return nccl_.check(nccl_.reduce_scatter(in, out, count, type, nccl_op(call.op), communicator_, stream),
                         "ncclReduceScatter");
    case Collective::kBroadcast:
      return nccl_.check(nccl_.broadcast(in, out, count, type, call.root, communicator_, stream), "ncclBroadcast");
    case Collective::kReduce:
      return nccl_.check(nccl_.reduce(in, out, count, type, nccl_op(call.op), call.root, communicator_, stream),
                         "ncclReduce");
    default:
      return move(call, in, out, stream);
  }
}

/// Like nccl-tests it puts sends and receives into one group.
void NcclPeer::move(const CollectiveCall& call, const void* in, void* out, cudaStream_t stream) const {
  const int n = call.pes;
  const auto count = static_cast<std::size_t>(call.count);
  const int type = nccl_type(call.type);
  const Size part = call.count * size_of(call.type);
  const auto send = [&](int peer, Size at) {
    nccl_.check(nccl_.send(static_cast<const std::byte*>(in) + at * part, count, type, peer, communicator_, stream),
                "ncclSend");
  };
  const auto receive = [&](int peer, Size at) {
    nccl_.check(nccl_.receive(static_cast<std::byte*>(out) + at * part, count, type, peer, communicator_, stream),
                "ncclRecv");
  };
  const bool at_root = pe_ == call.root;
  nccl_.check(nccl_.group_start(), "ncclGroupStart");
  switch (call.collective) {
    case Collective::kAllToAll:
      for (int peer = 0; peer < n; ++peer) send(peer, peer);
      for (int peer = 0; peer < n; ++peer) receive(peer, peer);
      break;
    case Collective::kGather:
      send(call.root, 0);
      for (int peer = 0; at_root && peer < n; ++peer) receive(peer, peer);
      break;
    case Collective::kScatter:
      for (int peer = 0; at_root && peer < n; ++peer) send(peer, peer);
      receive(call.root, 0);
      break;
    case Collective::kSendRecv:
      send((pe_ + 1) % n, 0);
      receive((pe_ + n - 1) % n, 0);
      break;
    case Collective::kExchange:
      send((pe_ ^ 1) < n ? pe_ ^ 1 : pe_, 0);
      receive((pe_ ^ 1) < n ? pe_ ^ 1 : pe_, 0);
      break;
    default:
      throw Unsupported(fmt::format("--vs: nccl given for {}, which NCCL does not have", name(call.collective)));
  }
  nccl_.check(nccl_.group_end(), "ncclGroupEnd");
}

}  // namespace tandem::cli
