// The names that the library exports.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

namespace {

using Names = std::set<std::string>;

/// The first words of the lines of a file, but for comments.
Names names_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  Names names;
  for (std::string line; std::getline(file, line);) {
    std::string word;
    if (std::istringstream(line) >> word && word[0] != '#') names.insert(word);
  }
  return names;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The words of a program.
Names words_of(const std::string& text) {
  Names words;
  std::string word;
  for (const char next : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(next)) != 0) {
      word += next;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, ""));
    }
  }
  return words;
}

/// The functions that the library defines for others, with the kind that nm gives: T strong, W weak.
Names exported() {
  Names names;
  const std::string command = std::string(TANDEM_NM) + " -D --defined-only " + TANDEM_NCCL_LIBRARY;
  FILE* const pipe = ::popen(command.c_str(), "r");
  char address[64], kind[8], name[256];
  while (std::fscanf(pipe, "%63s %7s %255s", address, kind, name) == 3) names.insert(std::string(kind) + " " + name);
  EXPECT_EQ(::pclose(pipe), 0);
  return names;
}

TEST(NcclNames, AreThoseOfTheListAndTheIdentity) {
  Names expected{"T tandem_nccl_identity"};
  for (const std::string& name : names_in(TANDEM_NCCL_NAMES)) {
    expected.insert("W nccl" + name);
    expected.insert("T pnccl" + name);
  }
  EXPECT_EQ(exported(), expected);
}

TEST(NcclNames, HaveAllThatProgramsImport) {
  const Names listed = names_in(TANDEM_NCCL_NAMES);
  int clients = 0;
  for (const auto& file : std::filesystem::directory_iterator(TANDEM_NCCL_CLIENTS)) {
    ++clients;
    for (const std::string& name : names_in(file.path())) EXPECT_TRUE(listed.count(name) != 0) << file << ": " << name;
  }
  EXPECT_EQ(clients, 6);
}

TEST(NcclNames, ListWhatIsRefusedAndTestsCallTheRest) {
  const std::string refused = text_of(TANDEM_NCCL_REFUSED);
  std::string tests;
  for (const auto& file : std::filesystem::directory_iterator(TANDEM_NCCL_TESTS))
    if (file.path().extension() == ".cpp") tests += text_of(file.path());
  const Names names = words_of(tests);
  std::istringstream list(text_of(TANDEM_NCCL_NAMES));
  for (std::string line; std::getline(list, line);) {
    std::string name, version, state;
    if (!(std::istringstream(line) >> name >> version >> state) || name[0] == '#') continue;
    EXPECT_TRUE(state == "implemented" || state == "cpu" || state == "refused") << line;
    EXPECT_EQ(refused.find("refused(\"nccl" + name + "\")") != std::string::npos, state == "refused") << name;
    const bool is_called = names.count("nccl" + name) != 0;
    EXPECT_TRUE(is_called || state == "refused") << name;
  }
}

TEST(NcclNames, AreLoadedUnderTheNameOfNccl) {
  void* const library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  EXPECT_NE(::dlsym(library, "tandem_nccl_identity"), nullptr);
  for (const std::string& name : names_in(TANDEM_NCCL_NAMES))
    EXPECT_EQ(::dlsym(library, ("nccl" + name).c_str()), ::dlsym(library, ("pnccl" + name).c_str())) << name;
  ::dlclose(library);
}

}  // namespace
