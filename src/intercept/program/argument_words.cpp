#include "intercept/program/argument_words.hpp"

#include "space/argument_type.hpp"

namespace contextune::intercept {
namespace {

std::string_view word_of_size(std::size_t size_bytes) {
  // A kernel's 8 bytes are nearly always an address, its 4 bytes a count.
  if (size_bytes == 8) return "ptr";
  return size_bytes == 4 ? "i32" : "opaque";
}

}  // namespace

std::string argument_words(const std::string& parameters, std::span<const ArgumentLayout> layouts) {
  const auto types = space::types_of_parameters(parameters);
  std::string words;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (i != 0) words += ' ';
    words += types.size() == layouts.size() ? space::to_word(types[i])
                                            : word_of_size(layouts[i].size_bytes);
  }
  return words;
}

}  // namespace contextune::intercept
