#include <dlfcn.h>
#include <fmt/format.h>

#include "gpu/nccl.h"
#include "tandem/error.h"

namespace tandem::bench {

namespace {

constexpr int kBFloat16 = 9;  // ncclBfloat16
constexpr int kSum = 0;       // ncclSum

}  // namespace

// As nccl.h declares them; communicators are opaque pointers, enumerations ints.
struct Nccl::Functions {
  int (*get_version)(int*);
  const char* (*error_string)(int);
  int (*init_all)(void** communicators, int count, const int* devices);
  int (*destroy)(void*);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void*, void*, std::size_t, int type, int op, void*, cudaStream_t);
  int (*all_gather)(const void*, void*, std::size_t, int type, void*, cudaStream_t);
  int (*reduce_scatter)(const void*, void*, std::size_t, int type, int op, void*, cudaStream_t);
  int (*broadcast)(const void*, void*, std::size_t, int type, int root, void*, cudaStream_t);
  int (*send)(const void*, std::size_t, int type, int peer, void*, cudaStream_t);
  int (*receive)(void*, std::size_t, int type, int peer, void*, cudaStream_t);

  void check(int code) const {
    if (code != 0) throw RuntimeFailure(fmt::format("NCCL: {}", error_string(code)));
  }
};

Nccl::Nccl(const std::string& library, int gpus) : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) throw Unsupported(fmt::format("NCCL: {}", dlerror()));
  nccl_ = std::make_unique<Functions>();
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library_, name));
    if (function == nullptr) throw Unsupported(fmt::format("NCCL: {} has no {}", library, name));
  };
  find(nccl_->get_version, "ncclGetVersion");
  find(nccl_->error_string, "ncclGetErrorString");
  find(nccl_->init_all, "ncclCommInitAll");
  find(nccl_->destroy, "ncclCommDestroy");
  find(nccl_->group_start, "ncclGroupStart");
  find(nccl_->group_end, "ncclGroupEnd");
  find(nccl_->all_reduce, "ncclAllReduce");
  find(nccl_->all_gather, "ncclAllGather");
  find(nccl_->reduce_scatter, "ncclReduceScatter");
  find(nccl_->broadcast, "ncclBroadcast");
  find(nccl_->send, "ncclSend");
  find(nccl_->receive, "ncclRecv");
  int number = 0;
  nccl_->check(nccl_->get_version(&number));
  version_ = fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
  communicators_.resize(static_cast<std::size_t>(gpus));
  nccl_->check(nccl_->init_all(communicators_.data(), gpus, nullptr));
}

Nccl::~Nccl() {
  for (void* communicator : communicators_) nccl_->destroy(communicator);
}

void Nccl::send_recv(const std::vector<int>& to, const std::vector<int>& from, int gpu, const void* in, void* out,
                     Size count, cudaStream_t stream) const {
  void* const communicator = communicators_[static_cast<std::size_t>(gpu)];
  const auto elements = static_cast<std::size_t>(count);
  const std::size_t bytes = elements * 2;
  nccl_->check(nccl_->group_start());
  for (std::size_t i = 0; i < to.size(); ++i)
    nccl_->check(
        nccl_->send(static_cast<const char*>(in) + i * bytes, elements, kBFloat16, to[i], communicator, stream));
  for (std::size_t i = 0; i < from.size(); ++i)
    nccl_->check(
        nccl_->receive(static_cast<char*>(out) + i * bytes, elements, kBFloat16, from[i], communicator, stream));
  nccl_->check(nccl_->group_end());
}

void Nccl::run(Collective collective, int gpu, const void* in, void* out, Size count, cudaStream_t stream) const {
  void* const communicator = communicators_[static_cast<std::size_t>(gpu)];
  const int gpus = static_cast<int>(communicators_.size());
  const auto elements = static_cast<std::size_t>(count);
  std::vector<int> all_gpus;
  for (int i = 0; i < gpus; ++i) all_gpus.push_back(i);
  switch (collective) {
    case Collective::kAllReduce:
      return nccl_->check(nccl_->all_reduce(in, out, elements, kBFloat16, kSum, communicator, stream));
    case Collective::kAllGather:
      return nccl_->check(nccl_->all_gather(in, out, elements, kBFloat16, communicator, stream));
    case Collective::kReduceScatter:
      return nccl_->check(nccl_->reduce_scatter(in, out, elements, kBFloat16, kSum, communicator, stream));
    case Collective::kBroadcast:
      return nccl_->check(nccl_->broadcast(in, out, elements, kBFloat16, 0, communicator, stream));
    case Collective::kAllToAll:
      return send_recv(all_gpus, all_gpus, gpu, in, out, count, stream);
    case Collective::kSendRecv:
      return send_recv({(gpu + 1) % gpus}, {(gpu + gpus - 1) % gpus}, gpu, in, out, count, stream);
    default:
      throw Unsupported(fmt::format("NCCL: no counterpart of {}", name(collective)));
  }
}

}  // namespace tandem::bench
