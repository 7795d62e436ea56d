#include "tuner_plugin.hpp"

#include <dlfcn.h>
#include <strings.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "settings.hpp"

namespace simnccl {

namespace {

struct Loaded {
  std::mutex mutex;
  bool failed = false;
  void* library = nullptr;
  TunerFunctions functions;
  int holders = 0;
};

Loaded& loaded() {
  static auto* const instance = new Loaded;
  return *instance;
}

// NCCL keeps the name in 255 bytes.
constexpr std::size_t longest_name = 254;

void* open(const std::string& name) {
  // Compared as NCCL does, which takes a beginning of the word for the word.
  const bool is_static = strncasecmp(name.c_str(), "STATIC_PLUGIN", name.size()) == 0;
  return dlopen(is_static ? nullptr : name.substr(0, longest_name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

bool is_file_name(const std::string& name) {
  return name.find('/') != std::string::npos || (name.starts_with("lib") && name.ends_with(".so"));
}

void* open_wanted() {
  const char* const variable = std::getenv("NCCL_TUNER_PLUGIN");
  const std::string wanted = variable == nullptr ? "" : variable;
  if (strcasecmp(wanted.c_str(), "none") == 0) return nullptr;
  if (wanted.empty()) return open("libnccl-tuner.so");
  void* const library = open(wanted);
  if (library != nullptr || is_file_name(wanted)) return library;
  return open("libnccl-tuner-" + wanted + ".so");
}

// Those before 2.28 do not know version 5, nor those before 2.24 version 4, nor those before 2.22
// version 3.
TunerFunctions functions_of(void* library) {
  const int version = Settings::instance().version;
  TunerFunctions found;
  if (version >= NCCL_VERSION(2, 28, 0)) {
    found.v5 = static_cast<const TunerV6*>(dlsym(library, "ncclTunerPlugin_v6"));
    if (found.v5 == nullptr)
      found.v5 = static_cast<const TunerV5*>(dlsym(library, "ncclTunerPlugin_v5"));
  }
  if (found.v5 != nullptr) return found;
  if (version >= NCCL_VERSION(2, 24, 0))
    found.v4 = static_cast<const TunerV4*>(dlsym(library, "ncclTunerPlugin_v4"));
  if (found.v4 != nullptr) return found;
  if (version >= NCCL_VERSION(2, 22, 0))
    found.v3 = static_cast<const TunerV3*>(dlsym(library, "ncclTunerPlugin_v3"));
  return found;
}

bool is_empty(const TunerFunctions& functions) {
  return functions.v5 == nullptr && functions.v4 == nullptr && functions.v3 == nullptr;
}

}  // namespace

TunerPlugin::TunerPlugin() {
  Loaded& plugin = loaded();
  const std::lock_guard lock(plugin.mutex);
  if (plugin.failed) return;
  if (plugin.library == nullptr) {
    void* const library = open_wanted();
    if (library != nullptr) plugin.functions = functions_of(library);
    if (library == nullptr || is_empty(plugin.functions)) {
      if (library != nullptr) dlclose(library);
      plugin.failed = true;
      return;
    }
    plugin.library = library;
    loaded_it_ = true;
  }
  functions_ = plugin.functions;
  ++plugin.holders;
}

TunerPlugin::~TunerPlugin() {
  Loaded& plugin = loaded();
  const std::lock_guard lock(plugin.mutex);
  if (!loaded_it_ || --plugin.holders > 0) return;
  dlclose(plugin.library);
  plugin.library = nullptr;
  plugin.functions = {};
}

}  // namespace simnccl
