#include "cli/live/live_token.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <contextune/error.hpp>
#include <cstddef>
#include <cstring>

namespace contextune::cli {
namespace {

constexpr std::size_t token_bytes = 16;

}  // namespace

LiveToken::LiveToken() {
  std::array<unsigned char, token_bytes> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(std::string("no random bytes for the address: ") + std::strerror(errno));
  for (const unsigned char byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    text_ += digits[byte >> 4U];
    text_ += digits[byte & 15U];
  }
}

bool LiveToken::is(std::string_view word) const noexcept {
  if (word.size() != text_.size()) return false;
  int differing = 0;
  for (std::size_t i = 0; i < word.size(); ++i)
    differing |= static_cast<unsigned char>(word[i]) ^ static_cast<unsigned char>(text_[i]);
  return differing == 0;
}

}  // namespace contextune::cli
