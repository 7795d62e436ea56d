#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/autotune_options.hpp>
#include <contextune/config.hpp>
#include <contextune/key.hpp>
#include <contextune/problem_table.hpp>

namespace contextune {

/// The part of an autotuned function that does not depend on its callables: a contextune_function,
/// and the numbers of its problems by the keys of calls. Any thread.
class AutotunedBase {
 public:
  [[nodiscard]] const std::string& name() const noexcept { return shared_->name; }
  [[nodiscard]] const AutotuneOptions& options() const noexcept { return shared_->options; }
  /// All configs, before any is pruned; empty while a space that depends on the device was not
  /// asked for.
  [[nodiscard]] const std::vector<Config>& configs() const noexcept { return shared_->configs; }

 protected:
  /// One call of the function, on one thread, for its callbacks: `given.user` is this. Exceptions
  /// stay on this side of the C functions.
  struct CallFrame {
    CallFrame(const AutotunedBase& called, const CallOptions& options);
    CallFrame(const CallFrame&) = delete;
    CallFrame& operator=(const CallFrame&) = delete;

    /// Goes on with what a callback has thrown, or with an Error where the call has failed.
    void check(int status) const;

    const AutotunedBase& function;
    const Config& set;  ///< parameters that the call sets by hand
    const std::string set_text = set.to_string();
    contextune_function_run given{};
    std::exception_ptr thrown;          ///< by the callback that was called last
    std::exception_ptr restore_failed;  ///< what the author's restore threw

   private:
    static int begin(void* frame, contextune_entry* entry) noexcept;
    static int restore(void* frame) noexcept;
    static void say(void* frame, const char* text) noexcept;
  };

  AutotunedBase(std::string name, AutotuneOptions options);
  AutotunedBase(AutotunedBase&&) noexcept;
  AutotunedBase& operator=(AutotunedBase&&) noexcept;
  ~AutotunedBase();

  /// Makes the function, of these described configs.
  /// @throws Error that names it if there is none, two are equal, or an option is out of range
  void create(std::vector<Config> configs);
  /// The same, of configs that its calls list by add_configs().
  void create();
  /// For the device of now. By whoever the library tells, one at a time.
  void set_configs(std::vector<Config> configs) noexcept { shared_->configs = std::move(configs); }
  static void add_configs(contextune_space& space, const std::vector<Config>& configs);

  // NOLINTNEXTLINE(bugprone-exception-escape): as ProblemTable::find
  [[nodiscard]] const detail::KnownProblem* find(const detail::CallKey& key) const noexcept {
    return shared_->problems.find(key);
  }
  /// The number of a problem that was not found.
  /// @param size null: it has none
  [[nodiscard]] std::uint32_t add(detail::CallKey at, const Key& key, const std::uint64_t* size,
                                  void* communicator) const;

  [[nodiscard]] contextune_function* handle() const noexcept { return shared_->function.get(); }

 private:
  struct Destroy {
    void operator()(contextune_function* function) const noexcept {
      contextune_function_destroy(function);
    }
  };
  struct Shared {
    std::string name;
    AutotuneOptions options;
    std::vector<Config> configs;
    std::unique_ptr<contextune_function, Destroy> function;
    detail::ProblemTable problems;
  };

  void make(const contextune_function_options* listed);

  std::unique_ptr<Shared> shared_;
};

}  // namespace contextune
