// A region that cannot be made for want of memory.
#include <cstdlib>
#include <new>

#include "fixture.hpp"

using namespace contextune;

namespace {

/// Allocations of this thread that go well before all others fail; below 0: all do.
thread_local int allocations_left = -1;

void* allocate(std::size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

bool can_make(Program& program, const std::string& name, int allocations) {
  allocations_left = allocations;
  bool made = true;
  try {
    (void)program.runtime().region(name, {});
  } catch (const std::exception&) {
    made = false;
  }
  allocations_left = -1;
  return made;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
// With it, or the sanitizer's own would meet our delete.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

TEST_CASE("A region that could not be made is not there, and can be made later", "[region]") {
  Program program;
  int failed = 0;
  // What one attempt leaves would spare the next one allocations.
  const auto name = [&] { return "lost " + std::to_string(failed); };
  while (!can_make(program, name(), failed)) {
    program.process().handles().stream_goes_away(nullptr);  // is told to every region
    CHECK(program.runtime().region(name(), {}).name() == name());
    ++failed;
  }
  CHECK(failed > 10);
}
