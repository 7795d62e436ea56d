// launch.args of a space file.
#include <cstdint>
#include <cstring>

#include "space/argument_type.hpp"
#include "space/launch_parts.hpp"

namespace contextune::space {
namespace {

template <class Number>
Number number_at(const void* address) {
  Number number;
  std::memcpy(&number, address, sizeof number);
  return number;
}

int push_argument(lua_State* lua, ArgumentType type, const void* address, std::size_t bytes) {
  const auto push = [lua](auto number) {
    lua_pushinteger(lua, static_cast<lua_Integer>(number));
    return 1;
  };
  switch (type) {
    case ArgumentType::I8:
      return push(number_at<std::int8_t>(address));
    case ArgumentType::U8:
      return push(number_at<std::uint8_t>(address));
    case ArgumentType::I16:
      return push(number_at<std::int16_t>(address));
    case ArgumentType::U16:
      return push(number_at<std::uint16_t>(address));
    case ArgumentType::I32:
      return push(number_at<std::int32_t>(address));
    case ArgumentType::U32:
      return push(number_at<std::uint32_t>(address));
    case ArgumentType::I64:
      return push(number_at<std::int64_t>(address));
    case ArgumentType::U64:
    case ArgumentType::Pointer:
      return push(number_at<std::uint64_t>(address));
    case ArgumentType::F32:
      lua_pushnumber(lua, static_cast<lua_Number>(number_at<float>(address)));
      return 1;
    case ArgumentType::F64:
      lua_pushnumber(lua, number_at<double>(address));
      return 1;
    case ArgumentType::Opaque:
      break;
  }
  lua_pushlstring(lua, static_cast<const char*>(address), bytes);
  return 1;
}

int count_arguments(lua_State* lua) {
  lua_pushinteger(lua, static_cast<lua_Integer>(launch_of(lua).num_arguments));
  return 1;
}

int read_argument(lua_State* lua) {
  const LaunchView& launch = launch_of(lua);
  Scene& scene = scene_of(lua);
  int is_whole = 0;
  const lua_Integer number =
      lua_type(lua, 2) == LUA_TNUMBER ? lua_tointegerx(lua, 2, &is_whole) : 0;
  if (is_whole == 0) {
    return luaL_error(lua, "launch.args is a list; write launch.args[1] for the first argument");
  }
  if (launch.arguments == nullptr) {
    return luaL_error(lua,
                      "the arguments of this launch cannot be read (the driver does not tell where "
                      "they lie); use launch.grid or launch.block");
  }
  if (number < 1 || static_cast<std::uint64_t>(number) > launch.num_arguments) {
    return luaL_error(lua, "launch.args[%I] does not exist; the kernel has %d arguments",
                      static_cast<LUAI_UACINT>(number), static_cast<int>(launch.num_arguments));
  }
  const auto index = static_cast<std::size_t>(number - 1);
  if (index >= scene.argument_types.size()) {
    return luaL_error(lua,
                      "the type of launch.args[%d] is not known; declare all of them, as in "
                      "params = { \"i32\", \"f32\", \"ptr\" }",
                      static_cast<int>(number));
  }
  const ArgumentType type = scene.argument_types[index];
  const std::size_t bytes =
      launch.layouts != nullptr ? launch.layouts[index].size_bytes : size_bytes(type);
  if (launch.arguments[index] == nullptr || bytes == 0) {
    return luaL_error(lua, "launch.args[%d] cannot be read: the driver does not tell its size",
                      static_cast<int>(number));
  }
  if (index < 64) {
    scene.reads.arguments |= std::uint64_t{1} << index;
  } else {
    scene.reads.everything = true;
  }
  return push_argument(lua, type, launch.arguments[index], bytes);
}

}  // namespace

int refuse_argument_write(lua_State* lua) {
  return luaL_error(lua,
                    "launch.args cannot be written: another argument is another problem, not "
                    "another way to solve it");
}

void push_arguments_object(lua_State* lua, Scene& scene) {
  push_object(lua, scene, "launch.args", 0, &read_argument, &refuse_argument_write,
              &count_arguments);
}

}  // namespace contextune::space
