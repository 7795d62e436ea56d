// The names behind NVTX handles. The frontend's own file is compiled into this test, with a strcmp
// and a calloc that count.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

extern "C" {
#include "preload/nvtx_names.h"
int counted_strcmp(const char* a, const char* b);
void* counted_calloc(std::size_t count, std::size_t bytes);
}

namespace {

thread_local std::size_t num_comparisons = 0;
std::atomic<std::size_t> num_allocations{0};

std::string name_of(std::size_t i) {
  return "layer " + std::to_string(i) + " forward";
}

}  // namespace

int counted_strcmp(const char* a, const char* b) {
  ++num_comparisons;
  return std::strcmp(a, b);
}

void* counted_calloc(std::size_t count, std::size_t bytes) {
  ++num_allocations;
  return std::calloc(count, bytes);
}

TEST_CASE("Registering a name takes no longer among 200,000 than among a few", "[nvtx]") {
  constexpr std::size_t num_names = 200'000;
  std::vector<const void*> handles;
  std::size_t most = 0;
  for (std::size_t i = 0; i < num_names; ++i) {
    num_comparisons = 0;
    handles.push_back(contextune_nvtx_intern(name_of(i).c_str()));
    most = std::max(most, num_comparisons);
  }
  CHECK(most < 64);
  for (std::size_t i = 0; i < num_names; ++i) {
    if (contextune_nvtx_name(handles[i]) != name_of(i) ||
        contextune_nvtx_intern(name_of(i).c_str()) != handles[i]) {
      FAIL("of " << name_of(i) << " the name is " << contextune_nvtx_name(handles[i]));
    }
  }
}

TEST_CASE("A name has one handle, whichever threads register it at once", "[nvtx]") {
  constexpr std::size_t num_names = 20'000;
  std::vector<std::vector<const void*>> handles(4);
  std::vector<std::thread> threads;
  for (auto& of_thread : handles) {
    threads.emplace_back([&of_thread] {
      for (std::size_t i = 0; i < num_names; ++i) {
        of_thread.push_back(contextune_nvtx_intern(("shared " + name_of(i)).c_str()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& of_thread : handles) CHECK(of_thread == handles[0]);
}

TEST_CASE("A tool's handle has the name that it was last given", "[nvtx]") {
  int tools[2] = {};
  contextune_nvtx_remember(&tools[0], "first");
  contextune_nvtx_remember(&tools[1], "second");
  CHECK(std::string(contextune_nvtx_name(&tools[0])) == "first");
  contextune_nvtx_remember(&tools[0], "reused");
  CHECK(std::string(contextune_nvtx_name(&tools[0])) == "reused");
  CHECK(std::string(contextune_nvtx_name(&tools[1])) == "second");
  CHECK(std::string(contextune_nvtx_name(&num_comparisons)).empty());
  CHECK(std::string(contextune_nvtx_name(nullptr)).empty());
}

TEST_CASE("A handle that a tool gives out again and again takes no more memory", "[nvtx]") {
  const int tool = 0;
  contextune_nvtx_remember(&tool, "to");
  contextune_nvtx_remember(&tool, "fro");
  contextune_nvtx_remember(&tool, "to");
  const std::size_t before = num_allocations;
  for (int i = 0; i < 100; ++i) contextune_nvtx_remember(&tool, i % 2 == 0 ? "fro" : "to");
  CHECK(num_allocations == before);
  CHECK(std::string(contextune_nvtx_name(&tool)) == "to");
}
