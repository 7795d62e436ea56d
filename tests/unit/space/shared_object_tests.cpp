#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>

#include "catch.hpp"

TEST_CASE("Space files are read inside a shared object that shows nothing of its Lua") {
  const char* const path = std::getenv("CONTEXTUNE_TEST_SHARED_OBJECT");
  REQUIRE(path != nullptr);
  void* const object = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  INFO((object == nullptr ? ::dlerror() : path));
  REQUIRE(object != nullptr);
  const auto count_rules =
      reinterpret_cast<std::size_t (*)(const char*)>(::dlsym(object, "count_rules"));
  REQUIRE(count_rules != nullptr);
  CHECK(count_rules("kernel 'a' {} kernel 'b' {}") == 2);
  CHECK(::dlsym(object, "lua_newstate") == nullptr);
  CHECK(::dlsym(object, "luaL_loadbufferx") == nullptr);
  CHECK(::dlsym(object, "contextune_lua_stdin") == nullptr);
  ::dlclose(object);
}
