#include "space/script_objects.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <variant>

#include "space/nearest_name.hpp"

namespace contextune::space {
namespace {

// Their addresses name slots of the registry.
char launch_key;
char config_key;
char device_key;

constexpr std::array<std::string_view, 10> device_fields = {"name",
                                                            "num_sms",
                                                            "compute_capability",
                                                            "max_threads_per_block",
                                                            "max_threads_per_sm",
                                                            "max_shared_bytes",
                                                            "max_shared_bytes_per_sm",
                                                            "registers_per_sm",
                                                            "l2_bytes",
                                                            "simulated"};

int read_device(lua_State* lua) {
  const DeviceFacts& device = scene_of(lua).device;
  scene_of(lua).device_was_read = true;
  const std::string_view name = text_at(lua, 2);
  const auto push = [lua](auto number) {
    lua_pushinteger(lua, static_cast<lua_Integer>(number));
    return 1;
  };
  if (name == "num_sms") return push(device.num_sms);
  if (name == "compute_capability") return push(device.compute_capability);
  if (name == "max_threads_per_block") return push(device.max_threads_per_block);
  if (name == "max_threads_per_sm") return push(device.max_threads_per_sm);
  if (name == "max_shared_bytes") return push(device.max_shared_bytes);
  if (name == "max_shared_bytes_per_sm") return push(device.max_shared_bytes_per_sm);
  if (name == "registers_per_sm") return push(device.registers_per_sm);
  if (name == "l2_bytes") return push(device.l2_bytes);
  if (name == "name") {
    lua_pushlstring(lua, device.name.data(), device.name.size());
    return 1;
  }
  if (name == "simulated") {
    lua_pushboolean(lua, device.simulated ? 1 : 0);
    return 1;
  }
  return raise_unknown(lua, "device", 2, device_fields);
}

int push_value(lua_State* lua, const Value& value) {
  if (const auto* const integer = std::get_if<std::int64_t>(&value)) {
    lua_pushinteger(lua, *integer);
  } else if (const auto* const number = std::get_if<double>(&value)) {
    lua_pushnumber(lua, *number);
  } else if (const auto* const flag = std::get_if<bool>(&value)) {
    lua_pushboolean(lua, *flag ? 1 : 0);
  } else {
    const auto& text = *std::get_if<std::string>(&value);
    lua_pushlstring(lua, text.data(), text.size());
  }
  return 1;
}

int read_config(lua_State* lua) {
  const Config* const config = scene_of(lua).config;
  if (config == nullptr) {
    return luaL_error(lua, "config can be used only while prune or apply runs; do not keep it");
  }
  if (const Value* const value = config->find(text_at(lua, 2))) return push_value(lua, *value);
  std::array<std::string_view, 32> names;
  std::size_t count = 0;
  for (const auto& entry : config->entries()) {
    if (count < names.size()) names[count++] = entry.first;
  }
  return raise_unknown(lua, "config", 2, std::span(names).first(count));
}

int refuse_write(lua_State* lua) {
  const auto* const object = static_cast<const char*>(lua_touserdata(lua, lua_upvalueindex(3)));
  return luaL_error(lua, "%s cannot be written; keep what you need in a local", object);
}

void store_object(lua_State* lua, const char& key) {
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &key);
}

}  // namespace

Scene& scene_of(lua_State* lua) noexcept {
  return *static_cast<Scene*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

const LaunchView& launch_of(lua_State* lua) {
  const LaunchView* const launch = scene_of(lua).launch;
  if (launch == nullptr) {
    luaL_error(lua, "launch can be used only while key, prune or apply runs; do not keep it");
  }
  return *launch;  // NOLINT(clang-analyzer-core.uninitialized.UndefReturn): luaL_error never
                   // returns
}

int raise_unknown(lua_State* lua, const char* object, int name_index,
                  std::span<const std::string_view> known) {
  if (lua_type(lua, name_index) != LUA_TSTRING) {
    return luaL_error(lua, "%s has named fields, so it cannot be indexed with a %s", object,
                      luaL_typename(lua, name_index));
  }
  // No string may be alive where an error is raised: it jumps over destructors.
  std::array<char, 400> text{};
  std::size_t length = 0;
  const auto append = [&](std::string_view part) {
    const int count = std::snprintf(text.data() + length, text.size() - length, "%.*s",
                                    static_cast<int>(part.size()), part.data());
    length = std::min(text.size() - 1, length + static_cast<std::size_t>(count));
  };
  const std::string_view nearest = nearest_name(text_at(lua, name_index), known);
  if (!nearest.empty()) {
    append("did you mean '");
    append(nearest);
    append("'?");
  } else if (known.empty()) {
    append("it has no fields");
  } else {
    append("it has ");
    for (std::size_t i = 0; i < known.size(); ++i) {
      append(i == 0 ? "" : i + 1 == known.size() ? " and " : ", ");
      append(known[i]);
    }
  }
  return luaL_error(lua, "%s has no field '%s'; %s", object, lua_tostring(lua, name_index),
                    text.data());
}

void push_object(lua_State* lua, Scene& scene, const char* type_name, int part, lua_CFunction read,
                 lua_CFunction write, lua_CFunction length) {
  lua_newuserdatauv(lua, 0, 4);
  lua_newtable(lua);
  const auto add = [&](const char* event, lua_CFunction function) {
    lua_pushlightuserdata(lua, &scene);
    lua_pushinteger(lua, part);
    lua_pushlightuserdata(lua, const_cast<char*>(type_name));
    lua_pushcclosure(lua, function, 3);
    lua_setfield(lua, -2, event);
  };
  add("__index", read);
  add("__newindex", write != nullptr ? write : &refuse_write);
  if (length != nullptr) add("__len", length);
  lua_pushstring(lua, type_name);
  lua_setfield(lua, -2, "__name");
  lua_setmetatable(lua, -2);
}

void make_script_objects(lua_State* lua, Scene& scene) {
  make_launch_object(lua, scene);
  store_object(lua, launch_key);
  push_object(lua, scene, "config", 0, &read_config, nullptr);
  store_object(lua, config_key);
  push_object(lua, scene, "device", 0, &read_device, nullptr);
  store_object(lua, device_key);
}

void push_launch(lua_State* lua) {
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &launch_key);
}
void push_config(lua_State* lua) {
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &config_key);
}
void push_device(lua_State* lua) {
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &device_key);
}

}  // namespace contextune::space
