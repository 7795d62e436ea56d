#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace contextune::gpu {

/// A file of the program that is loaded: the executable or a library.
struct ProgramFile {
  std::string load;   ///< its name and where it is; tells two loads of one file apart
  std::string build;  ///< what its linker named it by its contents, else its version; may be empty
};

/// The one whose read-only part has all of these bytes; absent: none has. Any thread.
/// @throws std::bad_alloc
[[nodiscard]] std::optional<ProgramFile> program_file_of(const void* address, std::uint64_t bytes);

/// The fatbin within the wrapper at `code`, where both are parts of the executable: it stays as it
/// is until the process ends. Null: they are not, or the driver links more to it at the load. Takes
/// no call of the system. Any thread.
[[nodiscard]] const void* fat_binary_of_program(const void* code) noexcept;

}  // namespace contextune::gpu
