#include "tools/tandem/options/add_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "tandem/error.h"
#include "tools/tandem/options/examples.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {
namespace {

/// CLI11's own numbers end below 2^64.
void add_seed(CLI::App& app, std::uint64_t& seed, const char* description) {
  const auto parse = [&seed](const std::string& text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
      throw InvalidArgument(fmt::format("--seed: '{}' given, allowed is a whole number from 0 to 2^64 - 1", text));
  };
  app.add_option_function<std::string>("--seed", parse, description)->type_name("N")->default_str("1");
}

void add_place(CLI::App& app, Arguments& a) {
  app.add_option("--backend", a.backend, "sim: the simulator; cuda: the GPUs of this machine; host: its CPUs")
      ->capture_default_str();
  app.add_option("--machine", a.machine,
                 "machine model: a name from `tandem machines`, or a JSON file (default: h200x4)");
  app.add_option("--nodes", a.nodes, "number of nodes (default: the machine's)");
  app.add_option("--pes", a.pes, "number of PEs; on several nodes they fill whole nodes (default: one for each GPU)");
  app.add_option("--pes-per-node", a.pes_per_node, "PEs of each virtual node into which a one-node machine is split");
  app.add_option("--dtype", a.dtype, "element type (default: bf16 for operators, f32 for collectives)");
  app.add_option("--algo", a.algorithm, "name of the algorithm (see `tandem list`)");
  add_seed(app, a.seed, "seed of the data and of the order of simultaneous events");
  app.add_flag("--phantom", a.phantom, "simulate timing and signals only, without data and checks");
  app.add_option("--iterations", a.iterations,
                 "number of timed calls, whose mean is shown (default: 1); cuda: number of rounds of --calls calls, "
                 "whose median is shown (default: by size)");
  app.add_option("--warmup", a.warmups, "number of calls before the timed ones")->capture_default_str();
  app.add_option("--json", a.json, "write the result as JSON to FILE, or to standard output (-)")->type_name("FILE|-");
}

void add_gpu(CLI::App& app, Arguments& a) {
  constexpr const char* group = "GPUs (--backend cuda)";
  app.add_flag("--graph", a.graph, "capture the calls in a CUDA graph and replay it")->group(group);
  app.add_option("--calls", a.calls, "consecutive calls of a round, over which its time is averaged (default: 20)")
      ->group(group);
  app.add_flag("--late", a.late, "switch off programmatic dependent launch")->group(group);
  app.add_option("--buffers", a.buffers,
                 "memory of the calls: heap (default), registered (launched processes only) or plain (cudaMalloc)")
      ->group(group);
}

void add_versus(CLI::App& app, Arguments& a) {
  constexpr const char* group = "GPUs (--backend cuda)";
  app.add_option("--vs", a.versus, "alternate with a baseline: nccl, or nccl+cublas for operators")->group(group);
  app.add_option("--nccl", a.nccl, "library of NCCL (default: TANDEM_NCCL_LIBRARY, else libnccl.so.2)")
      ->type_name("FILE")
      ->group(group);
}

void add_collective(CLI::App& app, Arguments& a) {
  constexpr const char* group = "Collectives";
  app.add_option("--op", a.reduction, "reduction: sum, prod, min, max, avg or premul_sum (default: sum)")->group(group);
  app.add_option("--root", a.root, "root PE (default: 0)")->group(group);
  app.add_option("--blocks", a.blocks, "blocks of the kernel (default: 0, chosen by size)")->group(group);
  app.add_option("--selection", a.selection,
                 "selection table with precedence over the builtin ones (default: TANDEM_SELECTION)")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--in-place", a.in_place, "use one buffer for input and output")->group(group);
  app.add_option("--wire", a.wire,
                 "form of values between PEs: type (default), or fp8 or int8 with a scale for each 128 elements; "
                 "experts: type, quantised or given")
      ->group(group);
  app.add_option("--data", a.data, "exact (every bit is checked) or normal (random normal, checked within a tolerance)")
      ->group(group);
}

void add_norm(CLI::App& app, Arguments& a) {
  constexpr const char* group = "all_reduce_norm";
  app.add_option("--rows", a.rows, "number of rows, with K, M or G (default: 16; exchange_heads: 1024)")->group(group);
  app.add_option("--hidden", a.hidden, "elements of a row (default: 8192; dispatch, combine: 7168)")->group(group);
  app.add_option("--norm", a.norm,
                 "norm of each row: none, rms (default) or layer; gemm_reduce_scatter, gemm_all_reduce: "
                 "with a residual, behind the sums; all_gather_gemm: before the gather (default: no residual, no "
                 "norm)")
      ->group(group);
  app.add_option("--quantise", a.quantise,
                 "scale of an fp8_e4m3 output: none (default, no fp8), static, row or 128 (one for 128 elements)")
      ->group(group);
  app.add_flag("--sharded-residual", a.sharded_residual, "keep residual and sums on the owner of each row only")
      ->group(group);
}

void add_heads(CLI::App& app, Arguments& a) {
  constexpr const char* group = "merge_heads, exchange_heads";
  app.add_option("--batch", a.batch, "merge_heads: batch, with K, M or G (default: 16)")->group(group);
  app.add_option("--heads", a.heads, "heads of all PEs (default: 64; exchange_heads: 32)")->group(group);
  app.add_option("--kv-heads", a.kv_heads, "exchange_heads: heads of k and of v (default: as q)")->group(group);
  app.add_option("--head-size", a.head_size, "elements of a head (default: 128)")->group(group);
  app.add_option("--to", a.to, "exchange_heads: heads (default: q, k and v) or rows (the attention's output)")
      ->group(group);
  app.add_flag("--all-heads", a.all_heads, "merge_heads: every PE gets all heads instead of its own")->group(group);
}

void add_experts(CLI::App& app, Arguments& a) {
  constexpr const char* group = "Experts (dispatch, combine, dispatch_gemm, gemm_combine)";
  app.add_option("--tokens", a.tokens, "tokens of a PE, with K, M or G (default: 128)")->group(group);
  app.add_option("--experts", a.experts, "experts of all PEs (default: 256)")->group(group);
  app.add_option("--top-k", a.top_k, "choices of a token (default: 8)")->group(group);
  app.add_option("--tp-size", a.tp_size,
                 "PEs that share the columns of each expert: 1 (default, expert-parallel) to all (tensor-parallel)")
      ->group(group);
  app.add_option("--routing", a.routing, "choices: balanced, random (default), zipf:S, one (PE 0's), none or ragged")
      ->group(group);
  app.add_option("--layout", a.layout, "place of dispatched rows: sorted (default), by_expert or in_place")
      ->group(group);
  app.add_option("--intermediate", a.intermediate,
                 "dispatch_gemm, gemm_combine: columns between both products (default: the model's)")
      ->group(group);
  app.add_option("--column-chunks", a.column_chunks,
                 "gemm_combine: chunks of columns whose sums travel beside the next one (default: 4)")
      ->group(group);
  app.add_option("--align", a.align, "sorted rows: alignment of each expert's first row (default: 1)")->group(group);
}

void add_shape(CLI::App& app, Arguments& a) {
  constexpr const char* group = "Operators";
  app.add_option("--shape", a.shape, "global problem")->type_name("MxNxK")->group(group);
  app.add_option("--model", a.model, "layer of a model, for example llama3-8b:ffn_up or deepseek-v3:moe")->group(group);
  app.add_option("--m", a.m, "rows in place of those of the shape or the model")->group(group);
  app.add_option("--out-dtype", a.out_dtype, "type of C (default: type of A and B; bf16 for fp8_e4m3)")->group(group);
  app.add_option("--b-layout", a.b_layout, "layout of B: NxK, as the weights of PyTorch's Linear (default), or KxN")
      ->group(group);
  app.add_flag("--bias", a.bias, "add a bias to each column of C")->group(group);
  app.add_option(
         "--activation", a.activation,
         "activation of C: none (default), relu, gelu or silu; all_gather_gemm: also swiglu or geglu, whose gates and "
         "ups are B's columns")
      ->group(group);
  app.add_option(
         "--scales", a.scales,
         "scales of fp8_e4m3: tensors (one for A, one for B), rows (of A), columns (of C), rows+columns or blocks "
         "(default: none)")
      ->group(group);
  app.add_flag("--fast-accumulation", a.fast_accumulation,
               "fp8_e4m3 on GPUs: less precise sums, which may take less time")
      ->group(group);
}

void add_operator(CLI::App& app, Arguments& a) {
  constexpr const char* group = "Operators";
  add_shape(app, a);
  app.add_option("--transport", a.transport, "transport: ce (copy engines) or sm")->group(group);
  app.add_option("--direction", a.direction, "push or pull")->group(group);
  app.add_option("--splits", a.splits, "chunks of each shard with a signal of their own, 1 to 8")->group(group);
  app.add_option("--shots", a.shots,
                 "gemm_all_reduce: 1 (every PE adds all sums) or 2 (the owners do) (default: by the rows)")
      ->group(group);
  app.add_option("--order", a.order, "order of the tiles (see `tandem list`)")->group(group);
  app.add_option("--tile", a.tile, "tile of the GEMM (default: 128x256)")->type_name("MxN")->group(group);
  app.add_option("--communication-sms", a.communication_sms,
                 "SMs that the GEMM leaves free (default: those that the transport needs)")
      ->group(group);
  app.add_flag("--compute-only", a.compute_only, "run the GEMM alone, like --algo compute_only")->group(group);
  app.add_flag("--communication-only", a.communication_only, "run the collective alone, like --algo communication_only")
      ->group(group);
  app.add_flag("--decomposed", a.decomposed, "run the GEMM in chunks between stream waits, like --algo decomposed")
      ->group(group);
}

void add_run(CLI::App& app, RunOptions& a) {
  CLI::App& run = *app.add_subcommand("run", "run a collective or an operator once, check it and time it");
  run.add_option("OP", a.subject, "collective or operator (see `tandem list`)")->required();
  add_place(run, a);
  add_gpu(run, a);
  add_versus(run, a);
  add_collective(run, a);
  add_norm(run, a);
  add_heads(run, a);
  add_experts(run, a);
  run.add_option("--bytes", a.bytes, "size as in nccl-tests, with K, M or G (default: 1M)")->group("Collectives");
  add_operator(run, a);
  run.add_flag("--explain", a.explain,
               "print every option with its value and its source: caller, cache, table or rule");
  constexpr const char* group = "Pictures";
  run.add_option("--trace", a.trace, "write a trace for the Perfetto viewer")->type_name("FILE")->group(group);
  run.add_option("--report", a.report, "write the timelines as one HTML page")->type_name("FILE.html")->group(group);
  run.add_option("--svg", a.svg, "write the timelines as a picture")->type_name("FILE.svg")->group(group);
}

void add_sizes(CLI::App& app, SweepOptions& a) {
  app.add_option("-b", a.first,
                 "first size, with K, M or G (default: 1K); operators: first number of rows (default: 512)");
  app.add_option("-e", a.last, "last size (default: 16M); operators: last number of rows (default: rows of the shape)");
  app.add_option("-f", a.factor, "factor from one size to the next")->capture_default_str();
}

void add_bench(CLI::App& app, BenchOptions& a) {
  CLI::App& bench =
      *app.add_subcommand("bench", "run a collective over sizes, or an operator over rows, like nccl-tests");
  bench.add_option("OP", a.subjects, "collectives or operators, one after the other (see `tandem list`)")->required();
  add_place(bench, a);
  add_gpu(bench, a);
  add_versus(bench, a);
  add_sizes(bench, a);
  add_collective(bench, a);
  add_norm(bench, a);
  add_heads(bench, a);
  add_experts(bench, a);
  add_operator(bench, a);
}

void add_tune(CLI::App& app, TuneOptions& a) {
  CLI::App& tune = *app.add_subcommand(
      "tune", "measure algorithms of collectives, or configurations of operators, and write the fastest into a table");
  tune.add_option("OP", a.subjects,
                  "collectives, operators, all_reduce_norm and merge_heads, or calls of experts, one after the other")
      ->required();
  tune.add_option("--out", a.out, "table of collectives or cache of operators; other entries of an existing file stay")
      ->type_name("FILE")
      ->required();
  add_place(tune, a);
  add_gpu(tune, a);
  add_sizes(tune, a);
  // Operators are tuned as a whole, for the rows of their shape.
  tune.get_option("--algo")->description("collectives: only this algorithm (default: all)");
  tune.get_option("-b")->description(
      "collectives: first size, with K, M or G (default: 1K); all_reduce_norm, merge_heads, experts: rows, batch or "
      "tokens (default: 1)");
  tune.get_option("-e")->description("collectives: last size (default: 16M); calls of a layer: 1024");
  tune.get_option("-f")->description("collectives: factor from one size to the next");
  add_norm(tune, a);
  add_heads(tune, a);
  add_experts(tune, a);
  tune.add_option("--wire", a.wire, "experts: form of rows, type (default), quantised or given")->group("Collectives");
  for (const char* refused : {"--rows", "--batch", "--tokens", "--column-chunks"})
    tune.get_option(refused)->group("");  // -b and -e give them
  tune.add_option("--op", a.reduction, "reduction: sum, prod, min, max, avg or premul_sum (default: sum)")
      ->group("Collectives");
  tune.add_flag("--in-place", a.in_place, "use one buffer for input and output")->group("Collectives");
  add_shape(tune, a);
  tune.add_option("--most", a.most,
                  "operators on GPUs: number of configurations to try, fastest predictions of the simulator first "
                  "(default: 24)");
}

void add_check(CLI::App& app, CheckArguments& a) {
  CLI::App& check = *app.add_subcommand("check", "check collectives or operators for races, hangs and wrong results");
  check.add_option(
      "OP", a.subject,
      "collective, operator, merge_heads, exchange_heads, experts, layers (consecutive operators), barrier, "
      "send_recv_group, or `all` (the default)");
  check
      .add_option("--schedules", a.schedules,
                  "number of schedules for each configuration (with --mutants: for each mutant, 200)")
      ->capture_default_str();
  check.add_option("--strategy", a.strategy, "strategy of the schedules: random, pct, delay or dfs")
      ->capture_default_str();
  add_seed(check, a.seed, "seed of the first schedule; later ones have the following numbers");
  check
      .add_option_function<std::string>(
          "--pes", [&a](const std::string& text) { a.pes = parse_pes(text); },
          "numbers of PEs to try (default: 2,3,4; with --mutants: 3,4)")
      ->type_name("N,...");
  check.add_option("--algo", a.algorithm, "check only this algorithm, named as by --list");
  check.add_option("--case", a.one_case, "check only this configuration, named as by --list and in reports");
  check.add_flag("--list", a.list,
                 "list algorithms and configurations (with --mutants: the mutants) instead of checking them");
  check.add_flag("--mutants", a.mutants,
                 "break every synchronising call site, one at a time, and check that it is found");
  check.add_option("--break", a.broken,
                   "check with one broken call site, named as by --mutants: 'wait dropped at src/collectives/x.h:35'");
  check.add_option("--json", a.json, "write the result as JSON to FILE, or to standard output (-)")
      ->type_name("FILE|-");
  check.add_option("--report", a.report, "write the timeline of the first finding's schedule as an HTML page")
      ->type_name("FILE.html");
  check.callback([&a, &check] { a.schedules_given = check.count("--schedules") > 0; });
}

/// Rejects --phantom=3 and --phantom=0.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::App* const subcommand : app.get_subcommands({}))
    for (CLI::Option* const option : subcommand->get_options())
      if (option->get_expected_max() == 0) option->disable_flag_override();
}

/// Applies one rule to all whole numbers. CLI11 itself also accepts "+1", " 1" and "0x10".
void take_whole_numbers_alone(CLI::App& app) {
  for (CLI::App* const subcommand : app.get_subcommands({}))
    for (CLI::Option* const option : subcommand->get_options()) {
      if (option->get_type_name() != "INT") continue;
      option->type_name("N");
      option->check([](const std::string& text) {
        return whole_number(text) ? "" : fmt::format("'{}' given, allowed is a whole number below 2^31", text);
      });
    }
}

}  // namespace

void add_commands(CLI::App& app, AllOptions& all) {
  app.add_subcommand("list", "list collectives and operators with their algorithms");
  app.add_subcommand("machines", "list machine models, or print the figures of one with their sources")
      ->add_option("MACHINE", all.machines.machine, "name or JSON file");
  add_run(app, all.run);
  add_bench(app, all.bench);
  add_check(app, all.check);
  app.add_subcommand("launch", "run a program as the PEs of one job on this computer (tandem launch --help)");
  app.add_subcommand("rendezvous", "let processes of several hosts meet (tandem rendezvous --help)");
  add_tune(app, all.tune);
  CLI::App& calibrate = *app.add_subcommand("calibrate", "write a machine model from measurements of this machine");
  calibrate.add_option("--out", all.calibrate.out, "file of the model")->type_name("FILE.json")->required();
  calibrate.add_option("--base", all.calibrate.base, "model with the figures that are not measured (default: h200x4)");
  CLI::App& doctor = *app.add_subcommand("doctor", "report the properties and problems of this machine, with remedies");
  doctor.add_option("--process", all.doctor.process, "report which NCCL the libraries of a running process call")
      ->type_name("PID")
      ->check(CLI::Range(1, 1 << 22));
  doctor.add_option("--json", all.doctor.json, "write the report as JSON to FILE, or to standard output (-)")
      ->type_name("FILE|-");
  app.add_subcommand("help", "print this text, or the help of a subcommand (tandem help run)");
  refuse_values_of_flags(app);
  take_whole_numbers_alone(app);
  add_examples(app);
}

}  // namespace tandem::cli
