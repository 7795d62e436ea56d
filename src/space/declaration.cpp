#include "space/declaration.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "space/argument_type.hpp"
#include "space/declared_table.hpp"
#include "space/nearest_name.hpp"

namespace contextune::space {
namespace {

constexpr std::array<std::string_view, 13> kernel_keys = {
    "params", "key",   "size",     "buckets",     "unseen",   "space",   "configs",
    "prune",  "apply", "variants", "co_resident", "n_warmup", "n_repeat"};
constexpr std::array<std::string_view, 3> unseen_words = {"tune", "nearest", "default"};
constexpr std::array<std::string_view, 5> collective_keys = {"space", "configs", "buckets",
                                                             "n_warmup", "n_repeat"};
constexpr std::array<std::string_view, 2> choice_keys = {"pin", "exclude"};
constexpr std::array<std::string_view, 5> collective_names = {
    "all_gather", "all_reduce", "reduce_scatter", "broadcast", "reduce"};
constexpr std::array<std::string_view, 3> collective_parameters = {"algorithm", "protocol",
                                                                   "channels"};
constexpr std::array<std::string_view, 7> algorithms = {
    "Ring", "Tree", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, 3> protocols = {"LL", "LL128", "Simple"};
constexpr std::int64_t max_channels = 64;
constexpr int most_passes = 1000;

bool knows(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<ArgumentType> read_params(const DeclaredTable& table) {
  std::vector<ArgumentType> types;
  for (const std::string& word : table.texts("params", true)) {
    const std::optional<ArgumentType> type = parse_argument_type(word);
    if (!type) {
      throw ScriptFault{0, "params[" + std::to_string(types.size() + 1) + "] = \"" + word +
                               "\" is no type" + suggestion(word, argument_type_words)};
    }
    types.push_back(*type);
  }
  return types;
}

std::vector<Config> with_variants(const std::vector<Config>& configs,
                                  const std::vector<std::string>& variants) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (std::count(variants.begin(), variants.end(), variants[i]) > 1) {
      throw ScriptFault{0, "variants lists '" + variants[i] + "' twice; take one away"};
    }
  }
  const std::vector<Config> nothing_else{Config()};
  const std::vector<Config>& others = configs.empty() ? nothing_else : configs;
  if (others.front().find(variant_parameter) != nullptr) {
    throw ScriptFault{0, "has variants and a parameter 'variant'; give the parameter another name"};
  }
  if (others.size() * variants.size() > max_configs) {
    throw ScriptFault{0, "space and variants give more than " + std::to_string(max_configs) +
                             " configs; give fewer"};
  }
  std::vector<Config> result;
  for (const std::string& variant : variants) {
    for (const Config& config : others) {
      result.push_back(Config{{variant_parameter, variant}});
      for (const auto& [name, value] : config.entries()) result.back().set(name, value);
    }
  }
  return result;
}

void check_collective_value(const std::string& name, const Value& value) {
  const auto refuse = [&](std::string_view what) {
    throw ScriptFault{0, name + " = " + to_string(value) + std::string(what)};
  };
  if (name == "channels") {
    const auto* const channels = std::get_if<std::int64_t>(&value);
    if (channels == nullptr || *channels < 0 || *channels > max_channels) {
      refuse(" is not a number of channels; give 0 (as NCCL chooses) to 64");
    }
    return;
  }
  const std::span<const std::string_view> words =
      name == "algorithm" ? std::span<const std::string_view>(algorithms) : protocols;
  const auto* const word = std::get_if<std::string>(&value);
  if (word == nullptr) refuse(" is not a text" + suggestion("", words));
  if (!knows(words, *word)) refuse(" is not known" + suggestion(*word, words));
}

/// How sizes of messages or problems are grouped, as the option `buckets` has it.
std::string read_buckets(const DeclaredTable& table) {
  std::string edges;
  for (const std::int64_t edge : table.ascending("buckets")) {
    if (!edges.empty()) edges += ',';
    edges += std::to_string(edge);
  }
  if (!edges.empty()) return edges;
  constexpr std::array<std::string_view, 2> words = {"pow2", "exact"};
  std::string word = table.text("buckets").value_or("");
  if (word.empty()) return word;
  if (!knows(words, word)) {
    throw ScriptFault{0, "buckets = \"" + word + "\" is not known" + suggestion(word, words)};
  }
  return word;
}

UnseenSize read_unseen(const DeclaredTable& table) {
  const std::string word = table.text("unseen").value_or("tune");
  const auto* const at = std::find(unseen_words.begin(), unseen_words.end(), word);
  if (at == unseen_words.end()) {
    throw ScriptFault{0, "unseen = \"" + word + "\" is not known" + suggestion(word, unseen_words)};
  }
  return static_cast<UnseenSize>(at - unseen_words.begin());
}

void bind(lua_State* lua, const char* name, ScriptFunction& function) {
  if (lua_getfield(lua, -1, name) != LUA_TFUNCTION) {
    lua_pop(lua, 1);
    return;
  }
  lua_Debug about;
  lua_pushvalue(lua, -1);
  lua_getinfo(lua, ">S", &about);
  function.line = about.linedefined;
  function.reference = luaL_ref(lua, LUA_REGISTRYINDEX);
}

}  // namespace

KernelDeclaration read_kernel(lua_State* lua, std::string name, int line) {
  const DeclaredTable table(lua, -1);
  table.check_keys(kernel_keys);
  KernelDeclaration kernel;
  kernel.name = std::move(name);
  kernel.line = line;
  if (table.has("params")) kernel.params = read_params(table);
  kernel.configs = table.configs();
  const std::vector<std::string> variants = table.texts("variants", false);
  kernel.has_variants = !variants.empty();
  if (kernel.has_variants) kernel.configs = with_variants(kernel.configs, variants);
  kernel.co_resident = table.flag("co_resident");
  kernel.n_warmup = table.integer("n_warmup", 0, most_passes);
  kernel.n_repeat = table.integer("n_repeat", 1, most_passes);

  static_cast<void>(table.has_function("key"));
  const bool has_size = table.has_function("size");
  const std::string buckets = read_buckets(table);
  kernel.unseen = read_unseen(table);
  const char* const of_sizes = !buckets.empty()      ? "buckets"
                               : table.has("unseen") ? "unseen"
                                                     : nullptr;
  if (of_sizes != nullptr && !has_size) {
    throw ScriptFault{0, std::string("has ") + of_sizes +
                             " but no size, so nothing says what is grouped; add "
                             "size = function(launch) return launch.args[1] end"};
  }
  if (!buckets.empty()) kernel.buckets = Buckets::parse(buckets);
  const bool prunes = table.has_function("prune");
  const bool applies = table.has_function("apply");
  if (!kernel.configs.empty() && !applies && !kernel.has_variants) {
    throw ScriptFault{0,
                      "has configs but no apply, so none of them would change anything; add "
                      "apply = function(config, launch) ... end"};
  }
  if (kernel.configs.empty() && (applies || prunes)) {
    throw ScriptFault{0, std::string("has ") + (applies ? "apply" : "prune") +
                             " but no configs; add space = { ... } or configs = { ... }"};
  }
  return kernel;
}

ChoiceDeclaration read_choice(lua_State* lua, std::string name) {
  const DeclaredTable table(lua, -1);
  table.check_keys(choice_keys);
  ChoiceDeclaration choice;
  choice.name = std::move(name);
  choice.pin = table.text("pin").value_or("");
  choice.exclude = table.texts("exclude", true);
  if (choice.pin.empty() && choice.exclude.empty()) {
    throw ScriptFault{0, "says nothing; add pin = \"name\" or exclude = { \"name\" }"};
  }
  if (std::find(choice.exclude.begin(), choice.exclude.end(), choice.pin) != choice.exclude.end()) {
    throw ScriptFault{0, "excludes '" + choice.pin + "', which it pins; take one of them away"};
  }
  return choice;
}

CollectiveDeclaration read_collective(lua_State* lua, std::string name) {
  if (!knows(collective_names, name)) {
    throw ScriptFault{0, "is no collective that can be tuned" + suggestion(name, collective_names)};
  }
  const DeclaredTable table(lua, -1);
  table.check_keys(collective_keys);
  CollectiveDeclaration collective;
  collective.name = std::move(name);
  collective.configs = table.configs();
  if (collective.configs.empty()) {
    throw ScriptFault{0, "has no configs; add space = { protocol = {\"LL\", \"Simple\"} }"};
  }
  for (const Config& config : collective.configs) {
    for (const auto& [parameter, value] : config.entries()) {
      if (!knows(collective_parameters, parameter)) {
        throw ScriptFault{0, "'" + parameter + "' is no parameter of a collective" +
                                 suggestion(parameter, collective_parameters)};
      }
      check_collective_value(parameter, value);
    }
  }
  collective.buckets = read_buckets(table);
  collective.n_warmup = table.integer("n_warmup", 0, most_passes);
  collective.n_repeat = table.integer("n_repeat", 1, most_passes);
  return collective;
}

void bind_functions(lua_State* lua, KernelDeclaration& declaration) {
  bind(lua, "key", declaration.key);
  bind(lua, "size", declaration.size);
  bind(lua, "prune", declaration.prune);
  bind(lua, "apply", declaration.apply);
}

}  // namespace contextune::space
