#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>

namespace bench {

/// Reads pairs of a flag and its value to where `settings` says: a text, a whole number from 1 to
/// 100000, or any number from 0 to 100000. For --help, prints `usage` and ends the program.
/// @throws std::runtime_error
inline void read_settings(
    int argc, char** argv, const char* usage,
    const std::map<std::string, std::variant<std::string*, int*, double*>>& settings) {
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--help") {
      std::fputs(usage, stdout);
      std::exit(0);
    }
    const auto setting = settings.find(flag);
    if (setting == settings.end() || i + 1 == argc)
      throw std::runtime_error("'" + flag + "' is unknown or lacks its value; see --help");
    const std::string value = argv[i + 1];
    if (std::string* const* const text = std::get_if<std::string*>(&setting->second)) {
      **text = value;
      continue;
    }
    char* end = nullptr;
    if (double* const* const any = std::get_if<double*>(&setting->second)) {
      **any = std::strtod(value.c_str(), &end);
      if (end == value.c_str() || *end != '\0' || !(**any >= 0 && **any <= 100000))
        throw std::runtime_error("'" + value + "' is not a number from 0 to 100000");
      continue;
    }
    const long number = std::strtol(value.c_str(), &end, 10);
    if (*end != '\0' || number < 1 || number > 100000)
      throw std::runtime_error("'" + value + "' is not a number from 1 to 100000");
    *std::get<int*>(setting->second) = static_cast<int>(number);
  }
}

}  // namespace bench
