#include "api/declared_rule.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <contextune/error.hpp>

#include "api/named_values.hpp"
#include "api/process.hpp"

namespace contextune::api {
namespace {

constexpr std::size_t error_bytes = 1024;
constexpr std::size_t key_bytes = 1024;

/// A launch in the form of the C callbacks.
class CallbackView {
 public:
  explicit CallbackView(const LaunchView& launch) : kernel_(launch.kernel) {
    view.size = sizeof view;
    view.kernel = kernel_.c_str();
    std::copy(launch.grid.begin(), launch.grid.end(), view.grid);
    std::copy(launch.block.begin(), launch.block.end(), view.block);
    std::copy(launch.cluster.begin(), launch.cluster.end(), view.cluster);
    view.shared_bytes = launch.shared_bytes;
    sizes_.reserve(launch.num_arguments);
    for (std::size_t i = 0; i < launch.num_arguments; ++i)
      sizes_.push_back(launch.layouts[i].size_bytes);
    view.num_arguments = launch.num_arguments;
    view.arguments = launch.arguments;
    view.argument_bytes = sizes_.data();
    if (intercept::Runtime* runtime = intercept::Runtime::get()) {
      const DeviceFacts facts = runtime->device_facts();
      view.num_sms = facts.num_sms;
      view.compute_capability = facts.compute_capability;
      view.max_threads_per_block = facts.max_threads_per_block;
      view.max_shared_bytes = facts.max_shared_bytes;
    }
    view.reads = contextune_reads_everything;
  }

  [[nodiscard]] LaunchReads reads() const {
    LaunchReads reads;
    reads.grid = (view.reads & contextune_reads_grid) != 0;
    reads.block = (view.reads & contextune_reads_block) != 0;
    reads.shape = (view.reads & contextune_reads_shape) != 0;
    reads.everything = (view.reads & contextune_reads_everything) != 0;
    reads.arguments = view.read_arguments;
    return reads;
  }

  contextune_launch_view view{};

 private:
  std::string kernel_;
  std::vector<std::size_t> sizes_;
};

using Numbers = std::array<std::uint32_t, 3>;

/// Numbers that were set, the others as the program wrote them; nothing if none was set. An answer
/// that is kept must not depend on what it did not read, so filling up counts as reading.
std::optional<Numbers> set_of(const std::uint32_t (&set)[3], const Numbers& before, bool& read) {
  Numbers numbers = before;
  int num_set = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (set[i] == CONTEXTUNE_UNCHANGED) continue;
    numbers[i] = set[i];
    ++num_set;
  }
  if (num_set == 0) return std::nullopt;
  if (num_set < 3) read = true;
  return numbers;
}

void unset(std::uint32_t (&numbers)[3]) {
  std::fill(std::begin(numbers), std::end(numbers), CONTEXTUNE_UNCHANGED);
}

std::string text_of(const char* text) {
  return text == nullptr ? std::string() : text;
}

}  // namespace

std::vector<Config> read_configs(const std::string& what, const char* const* texts,
                                 std::size_t num_texts) {
  if (texts == nullptr || num_texts == 0) {
    throw Error(what + " has no configs; give it at least one");
  }
  std::vector<Config> configs;
  configs.reserve(num_texts);
  for (std::size_t i = 0; i < num_texts; ++i) {
    if (texts[i] == nullptr)
      throw Error("config " + std::to_string(i) + " of " + what + " is NULL");
    Config config = parse_config(texts[i]);
    if (std::find(configs.begin(), configs.end(), config) != configs.end()) {
      throw Error(what + " has the config '" + config.to_string() + "' twice; give it once");
    }
    configs.push_back(std::move(config));
  }
  return configs;
}

DeclaredRule::DeclaredRule(const contextune_kernel& declared)
    : callbacks_(declared), name_(text_of(declared.kernel)), origin_(text_of(declared.origin)) {
  if (name_.empty()) throw Error("a kernel is declared without a name; set `kernel`");
  if (origin_.empty()) origin_ = "declaration of '" + name_ + "'";
  if (declared.apply == nullptr) {
    throw Error("kernel '" + name_ + "' is declared without `apply`; say what a config changes");
  }
  if (declared.unseen > contextune_unseen_default) {
    throw Error("kernel '" + name_ + "' says by `unseen` what is not known; see contextune_unseen");
  }
  configs_ = read_configs("kernel '" + name_ + "'", declared.configs, declared.num_configs);
  texts_.assign(declared.configs, declared.configs + declared.num_configs);
}

contextune_kernel DeclaredRule::declaration(std::vector<const char*>& configs) const {
  contextune_kernel declared = callbacks_;
  for (const std::string& text : texts_) configs.push_back(text.c_str());
  declared.kernel = name_.c_str();
  declared.origin = origin_.c_str();
  declared.configs = configs.data();
  return declared;
}

std::string DeclaredRule::failure_of(const char* callback, const char* text) const {
  return origin_ + ": " + callback + " of kernel '" + name_ + "' failed" +
         (*text != '\0' ? ": " + std::string(text) : std::string(" without saying why"));
}

std::size_t DeclaredRule::number_of(const Config& config) const {
  const auto found = std::find(configs_.begin(), configs_.end(), config);
  if (found == configs_.end()) {
    throw Error(origin_ + ": kernel '" + name_ + "' has no config '" + config.to_string() + "'");
  }
  return static_cast<std::size_t>(found - configs_.begin());
}

Key DeclaredRule::key(const LaunchView& launch, LaunchReads& reads) {
  if (callbacks_.key == nullptr) return {};
  CallbackView callback(launch);
  char error[error_bytes] = "";
  char text[key_bytes] = "";
  const int status =
      callbacks_.key(callbacks_.user, &callback.view, text, key_bytes, error, error_bytes);
  reads.merge(callback.reads());
  if (status != 0) throw Error(failure_of("key", error));
  text[key_bytes - 1] = '\0';
  return parse_key(text);
}

std::vector<Config> DeclaredRule::configs(const LaunchView& launch) {
  if (callbacks_.prune == nullptr) return configs_;
  CallbackView callback(launch);
  std::vector<Config> kept;
  for (std::size_t i = 0; i < configs_.size(); ++i) {
    char error[error_bytes] = "";
    int keep = 1;
    if (callbacks_.prune(callbacks_.user, i, &callback.view, &keep, error, error_bytes) != 0) {
      throw Error(failure_of("prune", error));
    }
    if (keep != 0) kept.push_back(configs_[i]);
  }
  return kept;
}

LaunchChange DeclaredRule::apply(const Config& config, const LaunchView& launch,
                                 LaunchReads& reads) {
  CallbackView callback(launch);
  contextune_launch_change change{};
  change.size = sizeof change;
  unset(change.grid);
  unset(change.block);
  unset(change.cluster);
  change.shared_bytes = CONTEXTUNE_UNCHANGED;
  char error[error_bytes] = "";
  const int status = callbacks_.apply(callbacks_.user, number_of(config), &callback.view, &change,
                                      error, error_bytes);
  reads.merge(callback.reads());
  if (status != 0) throw ConfigError(failure_of("apply", error));

  LaunchChange result;
  result.grid = set_of(change.grid, launch.grid, reads.grid);
  result.block = set_of(change.block, launch.block, reads.block);
  result.cluster = set_of(change.cluster, launch.cluster, reads.shape);
  if (change.shared_bytes != CONTEXTUNE_UNCHANGED) result.shared_bytes = change.shared_bytes;
  result.function = text_of(change.function);
  result.module = text_of(change.module);
  result.source = text_of(change.source);
  if (change.build_options != nullptr) {
    for (const char* const* option = change.build_options; *option != nullptr; ++option)
      result.build_options.emplace_back(*option);
  }
  return result;
}

std::optional<int> DeclaredRule::n_warmup() const {
  return callbacks_.n_warmup < 0 ? std::nullopt : std::optional(callbacks_.n_warmup);
}

std::optional<int> DeclaredRule::n_repeat() const {
  return callbacks_.n_repeat < 1 ? std::nullopt : std::optional(callbacks_.n_repeat);
}

}  // namespace contextune::api
