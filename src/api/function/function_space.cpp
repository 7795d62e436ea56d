#include "api/function/function_space.hpp"

#include <exception>

#include <contextune/error.hpp>

#include "api/function/function_call.hpp"
#include "api/last_error.hpp"
#include "api/program_call.hpp"

/// The configs of a function, while they are listed.
struct contextune_space {
  std::vector<std::string> configs;
};

namespace contextune::api {
namespace {

/// While this thread lists the configs of a function, which it then cannot call.
class Listing {
 public:
  /// @throws Error if this thread does so already
  explicit Listing(const contextune_function& function) : function_(function), outer_(innermost) {
    for (const Listing* one = outer_; one != nullptr; one = one->outer_)
      if (&one->function_ == &function)
        throw Error(function.about("its config space calls the function itself"));
    innermost = this;
  }
  ~Listing() { innermost = outer_; }
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

 private:
  static thread_local const Listing* innermost;
  const contextune_function& function_;
  const Listing* const outer_;
};
thread_local const Listing* Listing::innermost = nullptr;

}  // namespace

std::vector<std::string> list_space(const contextune_function& function,
                                    const contextune_function_run& call,
                                    const contextune_device& device) {
  if (call.space == nullptr)
    throw Error(function.about("it has no configs, and its calls have no `space` that lists them"));
  const Listing listing(function);
  contextune_space listed;
  if (call_program([&] { return call.space(call.user, &device, &listed); }) != 0)
    throw FunctionCall::Left{};
  return std::move(listed.configs);
}

std::string text_of(const contextune_device& device) {
  if (device.name[0] != '\0') return device.name;
  if (device.num_sms == 0) return "unknown device";
  return "device with " + std::to_string(device.num_sms) + " SMs";
}

}  // namespace contextune::api

using namespace contextune::api;

int contextune_space_add(contextune_space* space, const char* config) {
  if (space == nullptr || config == nullptr) return fail("there is no config to be added");
  try {
    space->configs.emplace_back(config);
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
