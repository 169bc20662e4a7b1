// Groups, multiplied sums, windows, several communicators, wrong arguments, and ends.

#include "gpu/nccl/nccl_interface_gpu_check.h"

namespace tandem::check {
namespace {

constexpr std::size_t kSlot = std::size_t{1} << 20U;  // bytes of one of several results in a buffer

/// Two collectives and a ring of messages in one group.
void mixed_group(Checker& checker) {
  const std::vector<Case> cases{{Kind::AllReduce, ncclFloat32, ncclSum, 1001},
                                {Kind::AllGather, ncclInt32, ncclSum, 333},
                                {Kind::Ring, ncclBfloat16, ncclSum, 4097}};
  const auto at = [&](const std::vector<char*>& base, std::size_t i, std::size_t n) { return base[i] + n * kSlot; };
  for (std::size_t i = 0; i < checker.ranks.size(); ++i) {
    checker.ranks[i].use();
    for (std::size_t n = 0; n < cases.size(); ++n) {
      checker.clear(cases[n], i, at(checker.out, i, n));
      checker.fill(cases[n], i, at(checker.in, i, n), 0);
    }
  }
  TANDEM_NCCL(checker.nccl, GroupStart);
  checker.together([&](std::size_t i) {
    for (std::size_t n = 0; n < cases.size(); ++n) {
      issue(checker.nccl, cases[n], checker.ranks[i], checker.total, at(checker.in, i, n), at(checker.out, i, n));
    }
  });
  TANDEM_NCCL(checker.nccl, GroupEnd);
  for (std::size_t i = 0; i < checker.ranks.size(); ++i) {
    checker.ranks[i].use();
    for (std::size_t n = 0; n < cases.size(); ++n) {
      checker.count(checker.is_right(cases[n], i, at(checker.out, i, n), 0), "group: " + cases[n].name());
    }
  }
}

/// `messages` to and from every rank, this one too; message m has m % 5 + 1 elements.
void many_messages(Checker& checker, int messages) {
  const std::size_t stride = std::size_t{8} * static_cast<std::size_t>(checker.total);
  const auto at = [&](char* base, int message, int peer) {
    return base + (static_cast<std::size_t>(message) * stride + static_cast<std::size_t>(peer) * 8) * 4;
  };
  std::vector<std::int32_t> sent(static_cast<std::size_t>(messages) * stride);
  for (std::size_t i = 0; i < checker.ranks.size(); ++i) {
    checker.ranks[i].use();
    for (std::size_t k = 0; k < sent.size(); ++k) {
      sent[k] = static_cast<std::int32_t>(k) * 10 + checker.ranks[i].number;
    }
    checker.ranks[i].copy(checker.in[i], sent.data(), sent.size() * 4);
  }
  TANDEM_NCCL(checker.nccl, GroupStart);
  checker.together([&](std::size_t i) {
    const Rank& rank = checker.ranks[i];
    for (int m = 0; m < messages; ++m) {
      const auto count = static_cast<std::size_t>(m % 5 + 1);
      for (int peer = 0; peer < checker.total; ++peer) {
        TANDEM_NCCL(checker.nccl, Send, at(checker.in[i], m, peer), count, ncclInt32, peer, rank.comm, rank.stream);
        TANDEM_NCCL(checker.nccl, Recv, at(checker.out[i], m, peer), count, ncclInt32, peer, rank.comm, rank.stream);
      }
    }
  });
  TANDEM_NCCL(checker.nccl, GroupEnd);
  std::vector<std::int32_t> got(sent.size());
  for (std::size_t i = 0; i < checker.ranks.size(); ++i) {
    checker.ranks[i].use();
    checker.ranks[i].copy(got.data(), checker.out[i], got.size() * 4);
    bool right = true;
    for (int m = 0; m < messages; ++m) {
      for (int peer = 0; peer < checker.total; ++peer) {
        const std::size_t from =
            static_cast<std::size_t>(m) * stride + static_cast<std::size_t>(checker.ranks[i].number) * 8;
        const std::size_t to = static_cast<std::size_t>(m) * stride + static_cast<std::size_t>(peer) * 8;
        for (std::size_t k = 0; k < static_cast<std::size_t>(m % 5 + 1); ++k) {
          right = right && got[to + k] == static_cast<std::int32_t>(from + k) * 10 + peer;
        }
      }
    }
    checker.count(right, std::to_string(messages) + " messages to each rank in a group");
  }
}

/// The result of a function that must fail with this code.
void expect(Checker& checker, ncclResult_t result, ncclResult_t wanted, const char* name) {
  checker.count(result == wanted, std::string(name) + " gave " + std::to_string(result));
}

}  // namespace

void check_groups(Checker& checker) {
  for (int turn = 0; turn < 20; ++turn) mixed_group(checker);
  for (const int messages : {1, 4, 5, 7, 400}) many_messages(checker, messages);
}

void check_multiplied_sums(Checker& checker) {
  for (const ncclDataType_t type : {ncclFloat32, ncclFloat16, ncclBfloat16, ncclFloat64}) {
    for (const bool on_device : {false, true}) {
      std::vector<ncclRedOp_t> ops(checker.ranks.size());
      char factor[8] = {};
      encode(3, type, factor);
      std::vector<void*> memory(ops.size());
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const Rank& rank = checker.ranks[i];
        rank.use();
        memory[i] = rank.allocate(8);
        rank.copy(memory[i], factor, 8);
        TANDEM_NCCL(checker.nccl, RedOpCreatePreMulSum, &ops[i], on_device ? memory[i] : factor, type,
                    on_device ? ncclScalarDevice : ncclScalarHostImmediate, rank.comm);
      }
      for (const Kind kind : {Kind::AllReduce, Kind::ReduceScatter, Kind::Reduce}) {
        Case c{kind, type, ops[0], 1037};
        c.factor = 3;
        checker.run(c);
      }
      for (std::size_t i = 0; i < ops.size(); ++i) {
        TANDEM_NCCL(checker.nccl, RedOpDestroy, ops[i], checker.ranks[i].comm);
      }
    }
  }
}

void check_windows(Checker& checker) {
  const std::size_t bytes = std::size_t{64} << 20U;
  std::vector<char*> inputs(checker.ranks.size());
  std::vector<char*> outputs(checker.ranks.size());
  std::vector<ncclWindow_t> windows(2 * checker.ranks.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    checker.ranks[i].use();
    for (char** memory : {&inputs[i], &outputs[i]}) {
      void* made = nullptr;
      TANDEM_NCCL(checker.nccl, MemAlloc, &made, bytes);
      *memory = static_cast<char*>(made);
    }
  }
  for (std::size_t both = 0; both < 2; ++both) {
    checker.together([&](std::size_t i) {
      TANDEM_NCCL(checker.nccl, CommWindowRegister, checker.ranks[i].comm, both == 0 ? inputs[i] : outputs[i], bytes,
                  &windows[2 * i + both], kWindowSymmetric);
    });
  }
  const std::size_t most = bytes / 5 / static_cast<std::size_t>(checker.total);
  for (const Kind kind : kKinds) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{1037}, most}) {
      checker.run_in({kind, ncclFloat32, ncclSum, count}, inputs, outputs);
    }
  }
  for (std::size_t both = 0; both < 2; ++both) {
    checker.together([&](std::size_t i) {
      TANDEM_NCCL(checker.nccl, CommWindowDeregister, checker.ranks[i].comm, windows[2 * i + both]);
    });
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    checker.ranks[i].use();
    for (char* memory : {inputs[i], outputs[i]}) TANDEM_NCCL(checker.nccl, MemFree, memory);
  }
}

void check_two_communicators(Checker& checker) {
  constexpr int kRounds = 2000;
  std::vector<Rank> others = checker.ranks;
  checker.together([&](std::size_t i) {
    TANDEM_NCCL(checker.nccl, CommSplit, checker.ranks[i].comm, 0, checker.ranks[i].number, &others[i].comm, nullptr);
  });
  for (Rank& rank : others) {
    rank.use();
    if (!on_host()) require(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
  }
  const Case sum{Kind::AllReduce, ncclFloat32, ncclSum, 5000};
  const Case gather{Kind::AllGather, ncclFloat32, ncclSum, 3000};
  for (std::size_t i = 0; i < others.size(); ++i) {
    checker.ranks[i].use();
    checker.clear(sum, i, checker.out[i]);
    checker.clear(gather, i, checker.out[i] + kSlot);
    checker.fill(sum, i, checker.in[i], 0);
    checker.fill(gather, i, checker.in[i] + kSlot, 0);
  }
  for (int round = 0; round < (on_host() ? 200 : kRounds); ++round) {
    checker.together([&](std::size_t i) {
      issue(checker.nccl, sum, checker.ranks[i], checker.total, checker.in[i], checker.out[i]);
    });
    checker.together([&](std::size_t i) {
      issue(checker.nccl, gather, others[i], checker.total, checker.in[i] + kSlot, checker.out[i] + kSlot);
    });
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    checker.ranks[i].use();
    others[i].synchronize();
    checker.count(checker.is_right(sum, i, checker.out[i], 0), "sums of two communicators");
    checker.count(checker.is_right(gather, i, checker.out[i] + kSlot, 0), "gathers of two communicators");
  }
  for (const Rank& rank : others) TANDEM_NCCL(checker.nccl, CommDestroy, rank.comm);
}

void check_bad_input(Checker& checker) {
  const Rank& rank = checker.ranks[0];
  auto* const all_reduce = checker.nccl.find<decltype(ncclAllReduce)>("ncclAllReduce");
  auto* const send = checker.nccl.find<decltype(ncclSend)>("ncclSend");
  char* const data = checker.in[0];
  rank.use();
  expect(checker, all_reduce(data, data, 1, static_cast<ncclDataType_t>(99), ncclSum, rank.comm, rank.stream),
         ncclInvalidArgument, "a type that there is not");
  expect(checker, all_reduce(data, data, 1, ncclFloat32, static_cast<ncclRedOp_t>(77), rank.comm, rank.stream),
         ncclInvalidArgument, "an operation that there is not");
  expect(checker, all_reduce(data, data, 1, ncclFloat32, ncclSum, nullptr, rank.stream), ncclInvalidArgument,
         "no communicator");
  expect(checker, send(data, 1, ncclFloat32, checker.total, rank.comm, rank.stream), ncclInvalidArgument,
         "a peer that there is not");
  checker.run({Kind::AllReduce, ncclFloat32, ncclSum, 100});
}

void check_split(Checker& checker) {
  const Rank& rank = checker.ranks[0];
  Rank alone = rank;
  TANDEM_NCCL(checker.nccl, CommSplit, rank.comm, rank.number, 0, &alone.comm, nullptr);
  alone.number = 0;
  int count = 0;
  TANDEM_NCCL(checker.nccl, CommCount, alone.comm, &count);
  checker.count(count == 1, "a part of one rank has one rank");
  TANDEM_NCCL(checker.nccl, AllReduce, checker.in[0], checker.in[0], 10, ncclFloat32, ncclSum, alone.comm,
              alone.stream);
  alone.synchronize();
  TANDEM_NCCL(checker.nccl, CommDestroy, alone.comm);
  ncclResult_t state = ncclInternalError;
  TANDEM_NCCL(checker.nccl, CommGetAsyncError, rank.comm, &state);
  checker.count(state == ncclSuccess, "no error of the communicator");
}

/// The last rank aborts, while the others wait for it; they must see an error and end.
void check_abort(Checker& checker) {
  const Rank& rank = checker.ranks[0];
  const bool aborts = rank.number == checker.total - 1;
  checker.shared.meet(checker.total);
  if (!aborts && !on_host()) {
    TANDEM_NCCL(checker.nccl, AllReduce, checker.in[0], checker.out[0], 10, ncclFloat32, ncclSum, rank.comm,
                rank.stream);
  }
  checker.shared.meet(checker.total);
  const double begin = seconds();
  if (!aborts && !on_host()) {
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess && seconds() - begin < 5) {
      TANDEM_NCCL(checker.nccl, CommGetAsyncError, rank.comm, &state);
    }
    std::printf("  an aborted peer is noticed after %.3f s, result %d: %s\n", seconds() - begin, state,
                checker.nccl.find<decltype(ncclGetLastError)>("ncclGetLastError")(rank.comm));
    checker.count(state == ncclRemoteError, "an aborted peer gives ncclRemoteError");
  }
  TANDEM_NCCL(checker.nccl, CommAbort, rank.comm);
  checker.count(true, "abort returns");
}

}  // namespace tandem::check
