#include "space/space_rule.hpp"

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>
#include <utility>

#include "core/trials/grown_space.hpp"
#include "space/argument_type.hpp"
#include "space/function_identity.hpp"
#include "space/kernel_name.hpp"
#include "space/key_result.hpp"
#include "space/launch_result.hpp"
#include "space/script_objects.hpp"

namespace contextune::space {
namespace {

constexpr int most_results = 64;

/// "12of16-9f3a01bc": how many configs are kept, and which.
std::string kept_text(const std::vector<bool>& kept) {
  std::uint32_t hash = 2166136261U;
  std::size_t count = 0;
  for (const bool keep : kept) {
    hash = (hash ^ (keep ? 1U : 2U)) * 16777619U;
    if (keep) ++count;
  }
  char text[64];
  std::snprintf(text, sizeof text, "%zuof%zu-%08x", count, kept.size(), hash);
  return text;
}

bool any(const LaunchReads& reads) {
  return reads.grid || reads.block || reads.shape || reads.everything || reads.arguments != 0;
}

}  // namespace

/// The time in which functions of the script run for one launch: holds the file's lock and shows
/// the launch to the script.
class SpaceRule::Call {
 public:
  Call(SpaceRule& rule, const LaunchView& launch) : rule_(rule), lock_(rule.script_->lock()) {
    Scene& scene = rule_.script_->scene();
    scene.launch = &launch;
    scene.config = nullptr;
    scene.kernel = rule_.declaration_.name;
    scene.writable = false;
    scene.reads = {};
    scene.edit = {};
    try {
      rule_.check_declared_types(launch);
      scene.argument_types = rule_.argument_types(launch);
    } catch (const ScriptFault& fault) {
      leave();
      fail(fault);
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { leave(); }

  /// Runs `body` in the script. @throws Error
  template <class Body>
  void run(const char* activity, Body&& body) {
    try {
      rule_.script_->state().protect(body);
    } catch (const ScriptFault& fault) {
      fail(fault, activity);
    }
  }

  /// The same of one config; `reads` gets what was read. @throws Error, and ConfigError where only
  /// this config is at fault
  template <class Body>
  void run_apply(LaunchReads& reads, Body&& body) {
    try {
      body();
      reads.merge(scene().reads);
    } catch (const ScriptFault& fault) {
      reads.merge(scene().reads);
      if (fault.ran_away) fail(fault, "apply");
      try {
        fail(fault, "apply");
      } catch (const Error& error) {
        throw ConfigError(error.what());
      }
    }
  }

  [[noreturn]] void fail(const ScriptFault& fault, const char* activity = nullptr) const {
    const KernelDeclaration& declaration = rule_.declaration_;
    std::string who = "kernel '" + declaration.name + "'";
    if (activity != nullptr) who += std::string(": ") + activity;
    rule_.script_->fail(fault.line > 0 ? fault.line : declaration.line, who, fault.text);
  }

  /// Which configs `prune` keeps.
  [[nodiscard]] std::vector<bool> kept() {
    const KernelDeclaration& declaration = rule_.declaration_;
    std::vector<bool> result(declaration.configs.size(), true);
    if (!declaration.prune) return result;
    run("prune", [&](lua_State* lua) {
      for (std::size_t i = 0; i < result.size(); ++i) {
        scene().config = &declaration.configs[i];
        lua_rawgeti(lua, LUA_REGISTRYINDEX, declaration.prune.reference);
        push_config(lua);
        push_launch(lua);
        lua_call(lua, 2, 1);
        if (lua_type(lua, -1) != LUA_TBOOLEAN) {
          throw ScriptFault{declaration.prune.line,
                            std::string("returned a ") + luaL_typename(lua, -1) +
                                "; return true to keep the config, false to drop it"};
        }
        result[i] = lua_toboolean(lua, -1) != 0;
        lua_settop(lua, 0);
      }
    });
    scene().config = nullptr;
    return result;
  }

  /// The number that `size` returns.
  [[nodiscard]] std::uint64_t size() {
    const ScriptFunction& function = rule_.declaration_.size;
    std::uint64_t result = 0;
    run("size", [&](lua_State* lua) {
      lua_rawgeti(lua, LUA_REGISTRYINDEX, function.reference);
      push_launch(lua);
      lua_call(lua, 1, 1);
      int whole = 0;
      const lua_Integer size = lua_tointegerx(lua, -1, &whole);
      if (lua_type(lua, -1) != LUA_TNUMBER || whole == 0 || size < 0) {
        throw ScriptFault{function.line,
                          "returned no size; return a whole number that is not negative"};
      }
      result = static_cast<std::uint64_t>(size);
      lua_settop(lua, 0);
    });
    return result;
  }

  [[nodiscard]] Scene& scene() { return rule_.script_->scene(); }

 private:
  void leave() {
    Scene& scene = rule_.script_->scene();
    scene.launch = nullptr;
    scene.config = nullptr;
    scene.argument_types = {};
    scene.writable = false;
  }

  SpaceRule& rule_;
  std::unique_lock<std::mutex> lock_;
};

SpaceRule::SpaceRule(std::shared_ptr<Script> script, std::size_t index)
    : script_(std::move(script)),
      declaration_(script_->kernels().at(index)),
      origin_(script_->place(declaration_.line)),
      normalised_(normalised_name(declaration_.name)),
      identity_(function_identity(*script_, declaration_.apply)) {}

void SpaceRule::check_declared_types(const LaunchView& launch) const {
  if (!declaration_.params || launch.layouts == nullptr) return;
  const std::vector<ArgumentType>& params = *declaration_.params;
  if (params.size() != launch.num_arguments) {
    throw ScriptFault{declaration_.line, "params has " + std::to_string(params.size()) +
                                             " entries, but the kernel has " +
                                             std::to_string(launch.num_arguments) +
                                             " arguments; name the type of each"};
  }
  for (std::size_t i = 0; i < params.size(); ++i) {
    const std::size_t declared = size_bytes(params[i]);
    const std::size_t actual = launch.layouts[i].size_bytes;
    if (declared != 0 && declared != actual) {
      throw ScriptFault{declaration_.line, "params[" + std::to_string(i + 1) + "] = \"" +
                                               std::string(to_word(params[i])) + "\" has " +
                                               std::to_string(declared) +
                                               " bytes, but the argument has " +
                                               std::to_string(actual) + "; correct the type"};
    }
  }
}

std::span<const ArgumentType> SpaceRule::argument_types(const LaunchView& launch) {
  if (declaration_.params) return *declaration_.params;
  if (launch.parameters.empty()) return {};
  if (derived_from_ != launch.parameters) {
    derived_types_ = types_of_parameters(launch.parameters);
    derived_from_ = launch.parameters;
  }
  if (derived_types_.size() != launch.num_arguments) return {};
  if (launch.layouts != nullptr) {
    for (std::size_t i = 0; i < derived_types_.size(); ++i) {
      const std::size_t size = size_bytes(derived_types_[i]);
      // The name was misread (a type named like another): bytes are still right.
      if (size != 0 && size != launch.layouts[i].size_bytes) {
        derived_types_[i] = ArgumentType::Opaque;
      }
    }
  }
  return derived_types_;
}

Key SpaceRule::key(const LaunchView& launch, LaunchReads& reads) {
  Key key;
  if (!declaration_.key && !declaration_.size && !declaration_.prune) return key;
  Call call(*this, launch);
  if (declaration_.prune) {
    const std::vector<bool> kept = call.kept();
    if (any(call.scene().reads)) key.add(kept_part, kept_text(kept));
  }
  Key declared;
  if (declaration_.key) {
    call.run("key", [&](lua_State* lua) {
      lua_rawgeti(lua, LUA_REGISTRYINDEX, declaration_.key.reference);
      push_launch(lua);
      lua_call(lua, 1, LUA_MULTRET);
      if (lua_gettop(lua) > most_results || lua_checkstack(lua, 8) == 0) {
        throw ScriptFault{declaration_.key.line, "returned too many values; return a few"};
      }
      declared = key_from_results(lua, 1, declaration_.key.line);
    });
  }
  if (declaration_.size) declared.add("size", declaration_.buckets.key_part(call.size()));
  key = std::move(declared.append(key));
  reads.merge(call.scene().reads);
  return key;
}

std::vector<Config> SpaceRule::configs(const LaunchView& launch) {
  if (!declaration_.prune) return declaration_.configs;
  Call call(*this, launch);
  const std::vector<bool> kept = call.kept();
  std::vector<Config> result;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) result.push_back(declaration_.configs[i]);
  }
  return result;
}

LaunchChange SpaceRule::apply(const Config& config, const LaunchView& launch, LaunchReads& reads) {
  Call call(*this, launch);
  Scene& scene = call.scene();
  scene.config = &config;
  scene.writable = true;
  if (declaration_.has_variants) scene.edit.function = config.get_string(variant_parameter);
  LaunchChange change;
  call.run_apply(reads, [&] {
    if (declaration_.apply) {
      script_->state().protect([&](lua_State* lua) {
        lua_rawgeti(lua, LUA_REGISTRYINDEX, declaration_.apply.reference);
        push_config(lua);
        push_launch(lua);
        lua_call(lua, 2, 0);
      });
    }
    change = finish_launch(scene, script_->folder());
  });
  return change;
}

}  // namespace contextune::space
