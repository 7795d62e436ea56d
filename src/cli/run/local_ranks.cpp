#include "cli/run/local_ranks.hpp"

#include <sys/random.h>
#include <sys/wait.h>

#include <array>
#include <contextune/error.hpp>
#include <cstring>

namespace contextune::cli {
namespace {

// 128 bits in hexadecimal digits: nobody guesses them.
std::string random_word() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error("the system has no random numbers, so that ranks cannot be told from strangers");
  constexpr std::string_view digits = "0123456789abcdef";
  std::string word;
  for (const unsigned char byte : bytes) {
    word += digits[byte >> 4U];
    word += digits[byte & 15U];
  }
  return word;
}

bool is_set(const Environment& environment, std::string_view name) {
  const char* value = environment.find(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::vector<Environment> environments_of_ranks(const Environment& base, int num_ranks) {
  Environment common = base;
  const std::string all = std::to_string(num_ranks);
  common.set("CONTEXTUNE_WORLD_SIZE", all);
  if (!is_set(base, "CONTEXTUNE_ADDRESS"))
    common.set("CONTEXTUNE_ADDRESS", "unix:contextune-run-" + random_word());
  if (!is_set(base, "CONTEXTUNE_SECRET")) common.set("CONTEXTUNE_SECRET", random_word());
  const bool own_names =
      !is_set(base, "RANK") && !is_set(base, "WORLD_SIZE") && !is_set(base, "LOCAL_RANK");
  std::vector<Environment> environments;
  for (int i = 0; i < num_ranks; ++i) {
    const std::string rank = std::to_string(i);
    Environment& environment = environments.emplace_back(common);
    environment.set("CONTEXTUNE_RANK", rank);
    if (!own_names) continue;
    environment.set("RANK", rank);
    environment.set("WORLD_SIZE", all);
    environment.set("LOCAL_RANK", rank);
  }
  return environments;
}

namespace {

std::string end_of(const std::string& who, int wait_status) {
  if (!WIFSIGNALED(wait_status))
    return who + " ended with status " + std::to_string(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  return who + " was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

}  // namespace

std::string end_of_rank(std::size_t rank, int wait_status) {
  return end_of("rank " + std::to_string(rank), wait_status);
}

std::string end_of_process(pid_t process, int wait_status) {
  return end_of("process " + std::to_string(process), wait_status);
}

}  // namespace contextune::cli
