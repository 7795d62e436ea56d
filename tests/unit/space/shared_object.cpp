// What libcontextune.so does with a space file, in a shared object of its own.
#include <cstddef>

#include "space/space_file.hpp"

extern "C" [[gnu::visibility("default")]] std::size_t count_rules(const char* text) {
  return contextune::space::SpaceFile::parse(text, "text.lua", {}).rules().size();
}
