#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

namespace contextune::cli {

/// A file for other tools, which is there whole or not at all: it is written under another name
/// beside its place and renamed at the end. Devices, pipes and standard output ("-") are written as
/// the bytes come.
class WholeFile {
 public:
  /// @throws Error that names the file, if it cannot be written
  explicit WholeFile(std::string path);
  /// Without finish() nothing is left.
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  [[nodiscard]] std::ostream& stream() noexcept;
  /// Puts it into its place. @return bytes written
  /// @throws Error that names the file, if anything of it could not be written
  [[nodiscard]] std::uint64_t finish();

 private:
  class Sink;
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string target_;     ///< where `path_` leads
  std::string temporary_;  ///< empty: it is written in its place
  std::unique_ptr<Sink> sink_;
  std::ostream stream_;
};

}  // namespace contextune::cli
