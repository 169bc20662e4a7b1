#pragma once
/// The names of temporary files, stored where a signal handler can read them.

#include <string>

namespace tandem::trace {

/// Registers a temporary file for remove_unfinished_files as long as the object lives.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& path);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

 private:
  int slot_ = -1;  ///< -1: all slots are taken, or the name is too long
};

}  // namespace tandem::trace
