// The C functions on functions.
#include <exception>
#include <memory>
#include <string>

#include <contextune/error.hpp>

#include "api/function/function_call.hpp"
#include "api/function/function_record.hpp"
#include "api/given_struct.hpp"
#include "api/last_error.hpp"
#include "api/program_call.hpp"

namespace contextune::api {
namespace {

/// @throws Error unless it has a size
template <class Struct>
Struct required(const Struct* given, const char* name) {
  if (given == nullptr || given->size == 0)
    throw Error(std::string("set `size` to sizeof(") + name + ")");
  return whole_of(given);
}

void read_options(contextune_function& made, const contextune_function_options& options) {
  if (options.version != nullptr) made.version = options.version;
  if (options.n_warmup < 0 || options.n_repeat < 0)
    throw Error(made.about("n_warmup is " + std::to_string(options.n_warmup) + " and n_repeat is " +
                           std::to_string(options.n_repeat) + "; they must be at least 0 and 1"));
  if (options.n_repeat > 0) {
    made.n_warmup = options.n_warmup;
    made.n_repeat = options.n_repeat;
  }
  made.repeatable = options.repeatable != 0;
  if (options.buckets != nullptr && *options.buckets != '\0') {
    try {
      made.buckets = Buckets::parse(options.buckets);
    } catch (const Error& error) {
      throw Error(made.about(error.what()));
    }
  }
  made.unseen = options.unseen;
  if (options.nearest_within != 0) made.nearest_within = options.nearest_within;
  if (options.num_hints != 0) made.hints.assign(options.hints, options.hints + options.num_hints);
  made.allow_override = options.allow_override != 0;
}

/// Does something of a call; what it is left with is told by its number.
template <class Do>
int in_call(contextune_function* function, const contextune_function_run* given, const Do& call) {
  try {
    if (function == nullptr) throw Error("there is no function to be called");
    const contextune_function_run whole = required(given, "contextune_function_run");
    if (whole.run == nullptr) throw Error(function->about("it is called without `run`"));
    FunctionCall one(*function, whole);
    return call(one);
  } catch (const FunctionCall::Left& left) {
    return left.status;
  } catch (const std::exception& error) {
    static_cast<void>(fail(error.what()));
    return CONTEXTUNE_FUNCTION_FAILED;
  }
}

}  // namespace
}  // namespace contextune::api

using namespace contextune;
using namespace contextune::api;

contextune_function* contextune_function_create(const char* name,
                                                const contextune_function_options* options) {
  try {
    if (name == nullptr || *name == '\0')
      throw Error("a function is autotuned without a name; give it one");
    const contextune_function_options whole = required(options, "contextune_function_options");
    auto made = std::make_unique<contextune_function>();
    made->name = name;
    made->caller = __builtin_return_address(0);
    read_options(*made, whole);
    if (whole.configs != nullptr)
      made->declare({whole.configs, whole.configs + whole.num_configs}, {});
    return made.release();
  } catch (const std::exception& error) {
    static_cast<void>(fail(error.what()));
    return nullptr;
  }
}

void contextune_function_destroy(contextune_function* function) {
  delete function;
}

uint32_t contextune_function_problem(contextune_function* function,
                                     const contextune_function_key* key) {
  try {
    if (function == nullptr) throw Error("a key is named of a function that does not exist");
    const std::uint32_t number = function->number_of(required(key, "contextune_function_key"));
    if (number == contextune_function::Problems::none)
      throw Error(function->about("it has too many keys; give it a coarser key, or buckets"));
    return number;
  } catch (const std::exception& error) {
    static_cast<void>(fail(error.what()));
    return CONTEXTUNE_UNTUNED;
  }
}

uint32_t contextune_function_settled(contextune_function* function, uint32_t number) {
  const FunctionProblem* const problem = function->problem(number);
  return problem == nullptr ? CONTEXTUNE_UNSETTLED : function->settled(*problem);
}

void contextune_function_drop(contextune_function* function, uint32_t number, uint32_t config) {
  FunctionProblem* const problem = function->problem(number);
  if (problem != nullptr) FunctionCall::drop(*function, *problem, config);
}

uint32_t contextune_function_default(contextune_function* function, uint32_t number) {
  const FunctionProblem* const problem = function->problem(number);
  const FunctionWays* const ways =
      problem == nullptr ? nullptr : problem->ways.load(std::memory_order_acquire);
  return ways == nullptr || ways->kept.empty() ? CONTEXTUNE_UNSETTLED : ways->kept.front();
}

contextune_tunable* contextune_function_tunable(contextune_function* function, uint32_t number,
                                                uint32_t* of_tunable) {
  const FunctionProblem* const problem = function == nullptr ? nullptr : function->problem(number);
  const FunctionWays* const ways =
      problem == nullptr ? nullptr : problem->ways.load(std::memory_order_acquire);
  const std::uint32_t found = ways == nullptr ? CONTEXTUNE_UNTUNED : ways->number;
  if (of_tunable != nullptr) *of_tunable = found;
  return found == CONTEXTUNE_UNTUNED ? nullptr : function->tunable.load(std::memory_order_acquire);
}

int contextune_function_call(contextune_function* function, uint32_t number,
                             const contextune_function_run* given) {
  return with_thread_end([&] {
    return in_call(function, given, [&](FunctionCall& call) { return call.run(number); });
  });
}

int contextune_function_tune(contextune_function* function, uint32_t number,
                             const contextune_function_run* given) {
  return with_thread_end([&] {
    return in_call(function, given, [&](FunctionCall& call) { return call.tune(number); });
  });
}
