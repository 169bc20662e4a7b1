#include "tools/tandem/doctor/nccl_process.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "tandem/error.h"

namespace tandem::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Mapping {
  std::uint64_t begin = 0, end = 0, offset = 0;
  std::string file;
};

std::vector<Mapping> mappings_of(int process) {
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  if (!maps) throw InvalidArgument(fmt::format("--process: {} given, allowed is a running process", process));
  std::vector<Mapping> all;
  for (std::string line; std::getline(maps, line);) {
    Mapping one;
    char dash = 0;
    std::string rights, device, node;
    std::istringstream text(line);
    text >> std::hex >> one.begin >> dash >> one.end >> rights >> one.offset >> device >> node >> std::ws;
    std::getline(text, one.file);
    if (one.file.starts_with('/')) all.push_back(one);
  }
  return all;
}

/// A library as its file has it.
class Image {
 public:
  explicit Image(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    const auto header = at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
      return;
    for (int i = 0; i < header->e_phnum; ++i) {
      const auto segment = at<Elf64_Phdr>(header->e_phoff + static_cast<std::uint64_t>(i) * sizeof(Elf64_Phdr));
      if (segment && segment->p_type == PT_LOAD) loads_.push_back(*segment);
      if (segment && segment->p_type == PT_DYNAMIC) read_dynamic(*segment);
    }
  }

  /// Returns what has to be added to its addresses if its beginning is mapped there.
  std::uint64_t base(std::uint64_t begin) const { return loads_.empty() ? begin : begin - loads_.front().p_vaddr; }

  /// Returns the address of the word that holds each imported function with this beginning.
  std::map<std::string, std::uint64_t> imports(std::string_view beginning) const {
    std::map<std::string, std::uint64_t> all;
    add_imports(beginning, DT_JMPREL, DT_PLTRELSZ, all);
    add_imports(beginning, DT_RELA, DT_RELASZ, all);
    return all;
  }

 private:
  template <class T>
  std::optional<T> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  void read_dynamic(const Elf64_Phdr& segment) {
    for (std::uint64_t i = 0; i < segment.p_filesz; i += sizeof(Elf64_Dyn))
      if (const auto entry = at<Elf64_Dyn>(segment.p_offset + i)) dynamic_[entry->d_tag] = entry->d_un.d_val;
  }

  /// Returns where the file has the bytes of an address, or the file's end.
  std::uint64_t offset_of(std::uint64_t address) const {
    for (const Elf64_Phdr& load : loads_)
      if (address >= load.p_vaddr && address < load.p_vaddr + load.p_filesz)
        return address - load.p_vaddr + load.p_offset;
    return bytes_.size();
  }

  std::uint64_t dynamic(std::int64_t tag) const {
    const auto found = dynamic_.find(tag);
    return found == dynamic_.end() ? 0 : found->second;
  }

  void add_imports(std::string_view beginning, std::int64_t table, std::int64_t size,
                   std::map<std::string, std::uint64_t>& all) const {
    const std::uint64_t symbols = offset_of(dynamic(DT_SYMTAB)), texts = offset_of(dynamic(DT_STRTAB));
    const std::uint64_t first = offset_of(dynamic(table));
    for (std::uint64_t i = 0; i + sizeof(Elf64_Rela) <= dynamic(size); i += sizeof(Elf64_Rela)) {
      const auto relocation = at<Elf64_Rela>(first + i);
      if (!relocation) return;
      const auto symbol = at<Elf64_Sym>(symbols + ELF64_R_SYM(relocation->r_info) * sizeof(Elf64_Sym));
      if (!symbol || symbol->st_shndx != SHN_UNDEF || texts + symbol->st_name >= bytes_.size()) continue;
      const char* const name = bytes_.data() + texts + symbol->st_name;
      if (std::string_view(name).starts_with(beginning)) all.emplace(name, relocation->r_offset);
    }
  }

  std::string bytes_;
  std::vector<Elf64_Phdr> loads_;
  std::map<std::int64_t, std::uint64_t> dynamic_;
};

/// Returns the file that is mapped at an address; empty if there is none.
std::string file_at(const std::vector<Mapping>& mappings, std::uint64_t address) {
  for (const Mapping& one : mappings)
    if (address >= one.begin && address < one.end) return one.file;
  return "";
}

/// Describes one library; null if it imports nothing of NCCL.
Json describe(const Mapping& first, const std::vector<Mapping>& all, std::ifstream& memory, void* tandem) {
  const Image image(first.file);
  const auto imports = image.imports("nccl");
  if (imports.empty()) return nullptr;
  std::set<std::string> bound;
  int unbound = 0;
  Json missing = Json::array();
  for (const auto& [name, place] : imports) {
    std::uint64_t address = 0;
    memory.seekg(static_cast<std::streamoff>(image.base(first.begin) + place));
    if (!memory.read(reinterpret_cast<char*>(&address), sizeof(address)))
      throw InvalidArgument("--process: its memory cannot be read; allowed is a process of the same user");
    const std::string file = file_at(all, address);
    // A function that was not called yet leads back to its own library.
    if (file.empty() || file == first.file)
      ++unbound;
    else
      bound.insert(file);
    if (tandem != nullptr && ::dlsym(tandem, name.c_str()) == nullptr) missing.push_back(name);
  }
  return {
      {"file", first.file}, {"imports", imports.size()}, {"bound", bound}, {"unbound", unbound}, {"missing", missing}};
}

}  // namespace

Json inspect_nccl_of(int process, const std::string& library) {
  const std::vector<Mapping> all = mappings_of(process);
  std::ifstream memory(fmt::format("/proc/{}/mem", process), std::ios::binary);
  if (!memory) throw InvalidArgument("--process: its memory cannot be read; allowed is a process of the same user");
  void* const tandem = library.empty() ? nullptr : ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  Json report = Json::array();
  std::set<std::string> seen;
  for (const Mapping& one : all)
    if (one.offset == 0 && seen.insert(one.file).second)
      if (Json line = describe(one, all, memory, tandem); !line.is_null()) report.push_back(std::move(line));
  return report;
}

}  // namespace tandem::cli
