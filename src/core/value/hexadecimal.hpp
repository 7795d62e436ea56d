#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace contextune {

/// 16 digits, as hashes stand in names and files.
[[nodiscard]] inline std::string hexadecimal(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace contextune
