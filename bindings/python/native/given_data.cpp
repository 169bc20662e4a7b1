#include "given_data.h"

#include <fmt/format.h>

#include <cstring>

#include "tandem/error.h"

namespace tandem::python {
namespace {

void check_count(const char* what, Arrays arrays, std::size_t wanted) {
  if (arrays.size() != wanted)
    throw InvalidArgument(fmt::format("{}: {} arrays given, allowed are {}", what, arrays.size(), wanted));
}

void check_bytes(const std::string& what, const tandem_sim_array& array, Size wanted) {
  if (array.bytes != static_cast<std::size_t>(wanted))
    throw InvalidArgument(fmt::format("{}: {} bytes given, allowed are {}", what, array.bytes, wanted));
  if (array.data == nullptr && wanted > 0) throw InvalidArgument(fmt::format("{}: no address given", what));
}

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

GivenCollectiveData::GivenCollectiveData(const cli::CollectiveCall& call, Arrays in, Arrays out,
                                         const std::vector<double>& scales)
    : CollectiveData(call), element_(size_of(call.type)), in_(in), out_(out), scales_(scales) {
  const auto pes = static_cast<std::size_t>(call.pes);
  check_count("arrays", in, pes);
  check_count("out", out, pes);
  for (int pe = 0; pe < call.pes; ++pe) {
    const auto i = static_cast<std::size_t>(pe);
    check_bytes(fmt::format("arrays[{}]", pe), in[i],
                input_elements(call.collective, call.count, call.pes, pe, call.root) * element_);
    check_bytes(fmt::format("out[{}]", pe), out[i],
                output_elements(call.collective, call.count, call.pes, pe, call.root) * element_);
  }
}

void GivenCollectiveData::fill_input(int pe, std::byte* in) const {
  const tandem_sim_array& array = in_[static_cast<std::size_t>(pe)];
  copy(in, array.data, array.bytes);
}

void GivenCollectiveData::check_part(int pe, Range part, const std::byte* out, cli::Check& /*check*/) const {
  std::byte* const to = static_cast<std::byte*>(out_[static_cast<std::size_t>(pe)].data);
  copy(to + part.begin * element_, out, static_cast<std::size_t>(part.size() * element_));
}

GivenMatrices::GivenMatrices(const cli::OperatorRun& run, int pes, Arrays in, Arrays out)
    : run_(run), pes_(pes), in_(in), out_(out) {
  if (run.options.form == Form::kComputeOnly || run.options.form == Form::kCommunicationOnly)
    throw InvalidArgument(
        fmt::format("algorithm: '{}' given with matrices, allowed without: it has no result", name(run.options.form)));
  check_count("a, b", in, 2);
  check_count("out", out, static_cast<std::size_t>(pes));
  const cli::Shape shape = run.shape();
  check_bytes("a", in[0], shape.m * shape.k * size_of(run.options.type));
  check_bytes("b", in[1], shape.n * shape.k * size_of(run.options.type));
  for (int pe = 0; pe < pes; ++pe)
    check_bytes(fmt::format("out[{}]", pe), out[static_cast<std::size_t>(pe)],
                cli::operator_shard(run.op, shape, pes, pe).c_elements() * size_of(run.options.result_type()));
}

void GivenMatrices::fill(int pe, std::byte* a, std::byte* b) const {
  cli::copy_shards(run_, pes_, pe, static_cast<const std::byte*>(in_[0].data),
                   static_cast<const std::byte*>(in_[1].data), a, b);
}

void GivenMatrices::check(int pe, const std::byte* c, cli::Check& /*check*/) const {
  const tandem_sim_array& array = out_[static_cast<std::size_t>(pe)];
  copy(array.data, c, array.bytes);
}

}  // namespace tandem::python
