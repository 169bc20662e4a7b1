// Every call with every type, operation, root and size, out of place and in place, and from graphs.

#include "gpu/nccl/nccl_interface_gpu_check.h"

namespace tandem::check {
Checker::Checker(const NcclLibrary& library, const std::vector<Rank>& local, int count, Shared& counts)
    : nccl(library), ranks(local), total(count), shared(counts) {
  for (const Rank& rank : ranks) {
    rank.use();
    in.push_back(static_cast<char*>(rank.allocate(kBytes)));
    out.push_back(static_cast<char*>(rank.allocate(kBytes)));
  }
}

void Checker::count(bool right, const std::string& name) {
  ++(right ? shared.passed : shared.failed);
  if (!right) std::printf("FAILED rank %d: %s\n", ranks[0].number, name.c_str());
}

void Checker::part(const char* name, const std::function<void()>& body) {
  const double begin = seconds();
  const int passed = shared.passed;
  const int failed = shared.failed;
  if (speaks()) std::printf("%s:\n", name);
  try {
    body();
  } catch (const std::exception& error) {
    count(false, std::string(name) + ": " + error.what());
    throw;
  }
  for (const Rank& rank : ranks) rank.synchronize();
  if (speaks()) {
    std::printf("  %s: about %d right, %d wrong, %.2f s\n", name, shared.passed - passed, shared.failed - failed,
                seconds() - begin);
  }
}

void Checker::together(const std::function<void(std::size_t)>& body) {
  if (ranks.size() > 1) TANDEM_NCCL(nccl, GroupStart);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].use();
    body(i);
  }
  if (ranks.size() > 1) TANDEM_NCCL(nccl, GroupEnd);
}

void Checker::fill(const Case& c, std::size_t local, char* to, int turn) {
  const std::size_t bytes = bytes_of(c.type);
  const std::size_t elements = c.inputs(ranks[local].number, total);
  if (elements == 0) return;
  scratch_.resize(elements * bytes);
  encode_input(c, ranks[local].number, total, turn, scratch_.data());
  ranks[local].copy(to, scratch_.data(), scratch_.size());
}

void Checker::clear(const Case& c, std::size_t local, char* to) {
  const std::size_t size = c.outputs(ranks[local].number, total) * bytes_of(c.type) + kGuard;
  scratch_.assign(size, '\x55');
  ranks[local].copy(to, scratch_.data(), size);
}

bool Checker::is_right(const Case& c, std::size_t local, const char* from, int turn) {
  const std::size_t bytes = bytes_of(c.type);
  const std::size_t elements = c.outputs(ranks[local].number, total);
  wanted_.assign(elements * bytes, 0);
  encode_result(c, ranks[local].number, total, turn, wanted_.data());
  if (!c.in_place) wanted_.resize(wanted_.size() + kGuard, '\x55');
  scratch_.resize(wanted_.size());
  ranks[local].copy(scratch_.data(), from, scratch_.size());
  return scratch_ == wanted_;
}

void Checker::run_in(const Case& c, const std::vector<char*>& inputs, const std::vector<char*>& outputs) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].use();
    if (!c.in_place) clear(c, i, outputs[i]);
    if (c.kind == Kind::Bcast && ranks[i].number == c.root) {
      fill(c, i, outputs[i], 0);
    } else if (c.kind != Kind::Bcast) {
      fill(c, i, inputs[i], 0);
    }
  }
  together([&](std::size_t i) { issue(nccl, c, ranks[i], total, inputs[i], outputs[i]); });
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].use();
    count(is_right(c, i, outputs[i], 0), c.name());
  }
}

void Checker::run(const Case& c) {
  std::vector<char*> inputs;
  std::vector<char*> outputs;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t skip = c.skip * bytes_of(c.type);
    inputs.push_back(c.in_place ? input_in_place(c, ranks[i].number, in[i] + skip) : in[i] + skip);
    outputs.push_back(c.in_place ? output_in_place(c, ranks[i].number, in[i] + skip) : out[i] + skip);
  }
  run_in(c, inputs, outputs);
}

void check_calls(Checker& checker) {
  int turn = 0;
  for (const Kind kind : kKinds) {
    for (int type = 0; type < ncclNumTypes; ++type) {
      Case c{kind, static_cast<ncclDataType_t>(type)};
      for (const std::size_t count : {1, 1037}) {
        for (int op = 0; op < (c.reduces() ? 5 : 1); ++op) {
          c.op = static_cast<ncclRedOp_t>(op);
          c.count = count;
          c.root = turn++ % checker.total;
          c.skip = static_cast<std::size_t>(turn % 3);
          if (c.is_exact(checker.total)) checker.run(c);
        }
      }
    }
    for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{65536}, std::size_t{262147}}) {
      for (const bool in_place : {false, true}) {
        if (in_place && (kind == Kind::AlltoAll || kind == Kind::Ring || kind == Kind::Bcast)) continue;
        checker.run({kind, ncclFloat32, ncclSum, count, in_place, turn++ % checker.total});
      }
    }
  }
}

void check_large(Checker& checker) {
  constexpr std::size_t kPiece = std::size_t{16} << 20U;
  for (const Kind kind : kKinds) {
    const Case one{kind};
    const std::size_t parts =
        one.inputs(0, checker.total) + one.outputs(0, checker.total) > 2 ? static_cast<std::size_t>(checker.total) : 1;
    checker.run({kind, ncclBfloat16, ncclSum, kPiece / 2 / parts + 1});
    checker.run({kind, ncclFloat32, ncclMax, kPiece / 2 / parts + 3, false, 0, 1, 1});
  }
}

namespace {

/// Captures one call on all streams of this process, replays it with new input, and makes the plain call in between.
void replay(Checker& checker, const Case& c) {
  std::vector<cudaGraphExec_t> graphs(checker.ranks.size());
  for (const Rank& rank : checker.ranks) require(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeGlobal));
  checker.together([&](std::size_t i) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      issue(checker.nccl, c, checker.ranks[i], checker.total, checker.in[i], checker.out[i]);
    }
  });
  std::vector<cudaGraph_t> captured(graphs.size());
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    checker.ranks[i].use();
    require(cudaStreamEndCapture(checker.ranks[i].stream, &captured[i]));
  }
  for (std::size_t i = 0; i < graphs.size(); ++i) {  // which is refused while this thread captures another stream
    checker.ranks[i].use();
    require(cudaGraphInstantiate(&graphs[i], captured[i], 0));
    require(cudaGraphDestroy(captured[i]));
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      checker.ranks[i].use();
      checker.clear(c, i, checker.out[i]);
      checker.fill(c, i, c.kind == Kind::Bcast ? checker.out[i] : checker.in[i], turn);
    }
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      checker.ranks[i].use();
      require(cudaGraphLaunch(graphs[i], checker.ranks[i].stream));
    }
    if (turn == 1) {
      checker.together([&](std::size_t i) {
        issue(checker.nccl, c, checker.ranks[i], checker.total, checker.in[i], checker.out[i]);
      });
    }
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      checker.ranks[i].use();
      checker.count(checker.is_right(c, i, checker.out[i], turn), "graph of " + c.name());
    }
  }
  for (const cudaGraphExec_t graph : graphs) require(cudaGraphExecDestroy(graph));
}

}  // namespace

void check_graphs(Checker& checker) {
  for (const Kind kind : kKinds) {
    replay(checker, {kind, ncclFloat32, ncclSum, 1037});
    replay(checker, {kind, ncclBfloat16, ncclSum, 1 << 20});
    // These sizes had no plain call before.
    replay(checker, {kind, ncclFloat16, ncclMin, 77});
  }
}

}  // namespace tandem::check
