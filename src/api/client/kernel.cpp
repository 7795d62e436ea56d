#include <contextune/kernel.hpp>

#include <algorithm>
#include <cstdio>

#include <contextune/contextune.h>
#include <contextune/error.hpp>

#include "api/client/config_texts.hpp"

namespace contextune {

/// The declared kernel, as the C callbacks find it. Outlives the declaration: the library keeps it.
struct Kernel::Rule {
  std::string name;
  ConfigSpace space;
  std::vector<Config> configs;
  KeyOfLaunch key;
  Size size;
  Buckets buckets;
  UnseenSize unseen = UnseenSize::Tune;
  Prune prune;
  Apply apply;
  int n_warmup = -1;
  int n_repeat = -1;
  // The texts that the last change refers to; calls for one kernel never overlap.
  std::vector<std::string> texts;
  std::vector<const char*> build_options;

  /// Runs `call` and turns what it throws into the C functions' way of failing.
  template <class Call>
  static int guarded(char* error, std::size_t error_bytes, const Call& call) noexcept {
    const auto report = [&](const char* text) {
      std::snprintf(error, error_bytes, "%s", text);
      return -1;
    };
    try {
      call();
      return 0;
    } catch (const std::exception& failure) {
      return report(failure.what());
    } catch (...) {
      return report("the declaration threw something that is not a std::exception");
    }
  }

  static int write_key(void* user, contextune_launch_view* launch, char* key, std::size_t key_bytes,
                       char* error, std::size_t error_bytes) {
    const auto* rule = static_cast<const Rule*>(user);
    return guarded(error, error_bytes, [&] {
      const LaunchInfo info(*launch);
      Key parts;
      if (rule->key) parts = rule->key(info);
      if (rule->size) parts.add("size", rule->buckets.key_part(rule->size(info)));
      const std::string text = parts.to_string();
      if (text.size() >= key_bytes) {
        throw Error("the key of kernel '" + rule->name + "' is longer than " +
                    std::to_string(key_bytes - 1) + " characters; make it shorter");
      }
      text.copy(key, text.size());
      key[text.size()] = '\0';
    });
  }

  static int keeps(void* user, std::size_t config, contextune_launch_view* launch, int* keep,
                   char* error, std::size_t error_bytes) {
    const auto* rule = static_cast<const Rule*>(user);
    return guarded(error, error_bytes, [&] {
      *keep = rule->prune(rule->configs.at(config), LaunchInfo(*launch)) ? 1 : 0;
    });
  }

  static int change(void* user, std::size_t config, contextune_launch_view* launch,
                    contextune_launch_change* change, char* error, std::size_t error_bytes) {
    auto* rule = static_cast<Rule*>(user);
    return guarded(error, error_bytes, [&] {
      rule->texts.clear();
      LaunchEdit edit(*launch, *change, rule->texts);
      rule->apply(rule->configs.at(config), edit);
      if (rule->texts.empty()) return;
      const auto text = [&](std::size_t i) {
        return rule->texts[i].empty() ? nullptr : rule->texts[i].c_str();
      };
      change->function = text(0);
      change->module = text(1);
      change->source = text(2);
      rule->build_options.clear();
      for (std::size_t i = 3; i < rule->texts.size(); ++i)
        rule->build_options.push_back(rule->texts[i].c_str());
      rule->build_options.push_back(nullptr);
      change->build_options = rule->build_options.data();
    });
  }
};

Kernel::Kernel(std::string name) : rule_(std::make_unique<Rule>()) {
  rule_->name = std::move(name);
}
Kernel::~Kernel() = default;

Kernel& Kernel::space(ConfigSpace space) {
  rule_->space = std::move(space);
  return *this;
}
Kernel& Kernel::set_key(KeyOfLaunch key) {
  rule_->key = std::move(key);
  return *this;
}
Kernel& Kernel::size(Size size) {
  rule_->size = std::move(size);
  return *this;
}
Kernel& Kernel::buckets(Buckets buckets) {
  rule_->buckets = std::move(buckets);
  return *this;
}
Kernel& Kernel::unseen(UnseenSize unseen) {
  rule_->unseen = unseen;
  return *this;
}
Kernel& Kernel::prune(Prune keep) {
  rule_->prune = std::move(keep);
  return *this;
}
Kernel& Kernel::apply(Apply apply) {
  rule_->apply = std::move(apply);
  return *this;
}
Kernel& Kernel::n_warmup(int passes) {
  rule_->n_warmup = passes;
  return *this;
}
Kernel& Kernel::n_repeat(int passes) {
  rule_->n_repeat = passes;
  return *this;
}

void Kernel::declare() {
  Rule& rule = *rule_;
  if (!rule.apply) {
    throw Error("kernel '" + rule.name + "' is declared without apply; say what a config changes");
  }
  try {
    rule.configs = rule.space.configs();
  } catch (const Error& error) {
    throw Error("kernel '" + rule.name + "': " + error.what());
  }
  const ConfigTexts texts(rule.configs);
  contextune_kernel declared{};
  declared.size = sizeof declared;
  declared.kernel = rule.name.c_str();
  declared.configs = texts.data();
  declared.num_configs = texts.size();
  declared.n_warmup = rule.n_warmup;
  declared.n_repeat = rule.n_repeat;
  declared.user = &rule;
  declared.key = rule.key || rule.size ? &Rule::write_key : nullptr;
  declared.keys_by_size = rule.size ? 1 : 0;
  declared.unseen = static_cast<contextune_unseen>(rule.unseen);
  declared.prune = rule.prune ? &Rule::keeps : nullptr;
  declared.apply = &Rule::change;
  if (contextune_declare_kernel(&declared) != 0) throw Error(contextune_error());
  // From here on the library calls it, until the process ends.
  static_cast<void>(rule_.release());
  rule_ = std::make_unique<Rule>();
}

}  // namespace contextune
