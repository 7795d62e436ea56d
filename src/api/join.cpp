#include "api/join.hpp"

#include <exception>
#include <string>
#include <vector>

#include "api/last_error.hpp"
#include "api/process.hpp"
#include "intercept/host/environment_options.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/ranks/communicator_join.hpp"

namespace contextune::api {
namespace {

/// Where the frontend leaves the core alone, the core has not learnt why.
std::string why_off() {
  std::vector<std::string> ignored;
  return intercept::options_from_environment(Options{}, ignored).disable
             ? "contextune is switched off: CONTEXTUNE_DISABLE is set"
             : state_reason();
}

std::string join_or_refuse(void* communicator, double seconds) {
  if (intercept::Runtime* found = runtime()) return found->ranks().join(communicator, seconds);
  std::string why = why_off();
  // The others would wait for this rank: it takes part to the point where it says that it does not.
  const gpu::Driver* cuda = driver();
  if (cuda == nullptr) return why;
  return intercept::meet_over(*cuda, {communicator}, seconds, {why, 0}).error;
}

}  // namespace

int join(void* communicator, double seconds) noexcept {
  const intercept::Uncancelled uncancelled;
  try {
    const std::string why = join_or_refuse(communicator, seconds);
    return why.empty() ? 0 : fail(why);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace contextune::api
