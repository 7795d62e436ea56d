// A fuzzer that is started as `NAME_fuzz --write-seeds=FOLDER` writes what it begins with, a file
// an input, and beside the folder a dictionary, FOLDER.dict.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "fuzz_target.hpp"

namespace {

std::string in_dictionary(std::string_view word) {
  std::string text = "\"";
  for (const char c : word) {
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned char>(c));
    text += escaped;
  }
  return text + "\"\n";
}

bool write_inputs(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const FuzzInputs inputs = fuzz_inputs();
  for (std::size_t i = 0; i < inputs.seeds.size(); ++i) {
    std::ofstream file(folder / ("seed-" + std::to_string(i)), std::ios::binary);
    if (!(file << inputs.seeds[i])) return false;
  }
  std::ofstream dictionary(folder.string() + ".dict");
  for (const std::string& word : inputs.words) dictionary << in_dictionary(word);
  return static_cast<bool>(dictionary);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view flag = "--write-seeds=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (!argument.starts_with(flag)) continue;
    const std::filesystem::path folder = argument.substr(flag.size());
    if (write_inputs(folder)) std::exit(0);
    std::fprintf(stderr, "%s cannot be written\n", folder.c_str());
    std::exit(2);
  }
  return 0;
}
