// Runs a fuzz target without a fuzzer: its seeds as they are, then as many inputs as were asked for
// that were made of them. Input number N is the same in every run with the same target.
//   NAME_inputs COUNT          seeds, and inputs 0 to COUNT - 1
//   NAME_inputs --only N FILE  writes input N, then runs it
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include "fuzz_target.hpp"

namespace {

volatile std::sig_atomic_t current = -1;  // input; below 0: a seed

void tell_current() {
  char text[96];
  const int size = std::snprintf(
      text, sizeof(text), current < 0 ? "It was seed %d.\n" : "It was input %d: --only %d FILE\n",
      current < 0 ? -1 - current : static_cast<int>(current), static_cast<int>(current));
  static_cast<void>(!write(STDERR_FILENO, text, static_cast<std::size_t>(size)));
}

extern "C" void on_abort(int signal) {
  tell_current();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

using Random = std::mt19937_64;

// Small numbers are drawn far more often than large ones.
std::size_t draw_length(Random& random, std::size_t most) {
  if (most == 0) return 0;
  const std::size_t scale = std::size_t{1} << (random() % 10);
  return std::min<std::size_t>(most, 1 + random() % scale);
}

void insert(std::string& text, Random& random, std::string_view what) {
  text.insert(random() % (text.size() + 1), what);
}

void change(std::string& text, Random& random, const FuzzInputs& inputs) {
  constexpr unsigned char edges[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '0', '"', '\\', '\n', '='};
  const std::size_t at = text.empty() ? 0 : random() % text.size();
  const std::size_t length = draw_length(random, text.size() - at);
  switch (random() % 8) {
    case 0:
      if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << (random() % 8)));
      break;
    case 1:
      if (!text.empty()) text[at] = static_cast<char>(edges[random() % std::size(edges)]);
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      insert(text, random, std::string(text.substr(at, length)));
      break;
    case 4: {
      std::string some(draw_length(random, 64), '\0');
      for (char& c : some) c = static_cast<char>(random());
      insert(text, random, some);
      break;
    }
    case 5:
      if (!inputs.words.empty()) insert(text, random, inputs.words[random() % inputs.words.size()]);
      break;
    case 6: {
      const std::string& other = inputs.seeds[random() % inputs.seeds.size()];
      const std::size_t from = other.empty() ? 0 : random() % other.size();
      insert(text, random, other.substr(from, draw_length(random, other.size() - from)));
      break;
    }
    default:
      text.resize(at);
      break;
  }
}

std::string make_input(std::size_t number, const FuzzInputs& inputs) {
  Random random(number);
  std::string text = inputs.seeds[random() % inputs.seeds.size()];
  for (std::size_t changes = 1 + random() % 6; changes > 0; --changes) change(text, random, inputs);
  return text;
}

void run(const std::string& input) {
  // In memory of its own length: a byte too far is seen.
  std::vector<std::uint8_t> bytes(input.begin(), input.end());
  bytes.shrink_to_fit();
  static_cast<void>(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()));
}

int usage(const char* name) {
  std::fprintf(stderr, "%s COUNT\n%s --only NUMBER FILE\n", name, name);
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  const FuzzInputs inputs = fuzz_inputs();
  std::signal(SIGABRT, on_abort);
  __sanitizer_set_death_callback(tell_current);
  if (count == 4 && std::strcmp(arguments[1], "--only") == 0) {
    const std::string input = make_input(std::strtoul(arguments[2], nullptr, 10), inputs);
    std::ofstream(arguments[3], std::ios::binary) << input;
    run(input);
    return 0;
  }
  if (count != 2) return usage(arguments[0]);
  for (const std::string& seed : inputs.seeds) {
    run(seed);
    current = current - 1;
  }
  const std::size_t wanted = std::strtoul(arguments[1], nullptr, 10);
  for (std::size_t i = 0; i < wanted; ++i) {
    current = static_cast<std::sig_atomic_t>(i);
    run(make_input(i, inputs));
  }
  std::printf("%zu seeds and %zu inputs made of them\n", inputs.seeds.size(), wanted);
  return 0;
}
