// What the test programs share. They know nothing of contextune.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define CUDA_CHECK(call)                                                            \
  do {                                                                              \
    const auto result_ = (call);                                                    \
    if (static_cast<int>(result_) != 0) {                                           \
      std::fprintf(stderr, "%s:%d: %s failed with %d\n", __FILE__, __LINE__, #call, \
                   static_cast<int>(result_));                                      \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (0)

/// The value after `--name` on the command line, or `fallback`.
inline std::string option(int argc, char** argv, const char* name, const std::string& fallback) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
  }
  return fallback;
}

inline long option(int argc, char** argv, const char* name, long fallback) {
  return std::strtol(option(argc, argv, name, std::to_string(fallback)).c_str(), nullptr, 10);
}

/// FNV-1a over the bytes of an output: equal only if every bit is.
class Checksum {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* byte = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) sum_ = (sum_ ^ byte[i]) * 0x100000001b3u;
  }
  void print(const char* what) const {
    std::printf("%s %016llx\n", what, static_cast<unsigned long long>(sum_));
  }

 private:
  std::uint64_t sum_ = 0xcbf29ce484222325u;
};
