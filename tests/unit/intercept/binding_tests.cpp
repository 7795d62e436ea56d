#include <atomic>
#include <cstdlib>
#include <deque>
#include <thread>

#include "catch.hpp"
#include "intercept/site/binding.hpp"

using namespace contextune;
using namespace contextune::intercept;

namespace {

const ArgumentLayout layouts[] = {{0, 4}, {8, 8}, {16, 4}};

/// A launch with arguments of its own.
struct Call {
  int n;
  double* pointer = nullptr;
  float alpha = 0;
  void* params[3] = {&n, &pointer, &alpha};
  contextune_launch call{};

  explicit Call(int of, float a = 0) : n(of), alpha(a) {
    call.fn = contextune_fn_cuLaunchKernel;
    call.kernel_params = params;
  }
  [[nodiscard]] Launch get() const { return Launch(call); }
};

Site& site() {
  static auto& one = *new Site;
  if (one.configs.empty()) one.configs.resize(3);
  return one;
}

}  // namespace

TEST_CASE("An answer is given only for arguments that agree in what was read", "[binding]") {
  Memo memo(0b001, layouts);
  Call a(100, 1.0F);
  CHECK(memo.find(a.get()) == nullptr);
  Resolved* answer = memo.insert(a.get(), site());
  REQUIRE(answer != nullptr);
  CHECK(memo.find(a.get()) == answer);
  CHECK(memo.find(Call(100, 2.0F).get()) == answer);
  for (int n = 0; n < 1000; ++n) {
    if (n != 100) REQUIRE(memo.find(Call(n, 1.0F).get()) == nullptr);
  }
}

TEST_CASE("Several answers live beside each other, until there is no room", "[binding]") {
  Memo memo(0b101, layouts);
  std::vector<Resolved*> answers;
  for (int n = 0; n < 1024; ++n) answers.push_back(memo.insert(Call(n, 0.5F).get(), site()));
  for (int n = 0; n < 1024; ++n) {
    REQUIRE(memo.find(Call(n, 0.5F).get()) == answers[static_cast<std::size_t>(n)]);
    REQUIRE(memo.find(Call(n, 0.25F).get()) == nullptr);
  }
  CHECK(memo.insert(Call(5000).get(), site()) == nullptr);
}

TEST_CASE("A rule that reads no argument has one answer for all", "[binding]") {
  Memo memo(0, layouts);
  Resolved* answer = memo.insert(Call(1).get(), site());
  CHECK(memo.find(Call(2, 3.0F).get()) == answer);
}

TEST_CASE("A variant with attributes that is made again is the one that was there", "[binding]") {
  Resolved resolved(site(), 0, {});
  const auto made = [](int priority) {
    auto variant = std::make_unique<Variant>();
    variant->usable = true;
    variant->num_attributes = 1;
    variant->attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    variant->attributes[0].value.priority = priority;
    return variant;
  };
  resolved.set_variant(1, made(-1));
  const Variant* const first = resolved.variant(1);
  resolved.set_variant(2, made(-2));
  CHECK(resolved.variant(2) != first);
  for (int epoch = 0; epoch < 3; ++epoch) {
    resolved.forget_variants();
    CHECK(resolved.variant(1) == nullptr);
    resolved.set_variant(1, made(-1));
    CHECK(resolved.variant(1) == first);
  }
}

TEST_CASE("Packed arguments give the same answers as pointers to them", "[binding]") {
  Memo memo(0b101, layouts);
  Resolved* answer = memo.insert(Call(7, 1.5F).get(), site());
  struct Packed {
    int n;
    int padding;
    double* pointer;
    float alpha;
  } packed{7, -1, nullptr, 1.5F};
  std::size_t size = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  contextune_launch call{};
  call.fn = contextune_fn_cuLaunchKernel;
  call.extra = extra;
  CHECK(memo.find(Launch(call)) == answer);
  size = 18;  // the last argument is cut off
  CHECK(memo.find(Launch(call)) == nullptr);
}

TEST_CASE("A cache that grows keeps all it had", "[binding]") {
  LaunchCache<Binding> cache;
  std::deque<Binding> bindings;
  std::vector<LaunchKey> keys;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    LaunchKey key;
    key.grid = {i % 50, i / 50, 1};
    keys.push_back(key);
    CHECK(cache.find(key) == nullptr);
    cache.insert(&bindings.emplace_back(key));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) REQUIRE(cache.find(keys[i]) == &bindings[i]);
}

TEST_CASE("A cache answers while another thread inserts", "[binding]") {
  LaunchCache<Binding> cache;
  std::deque<Binding> bindings;
  const auto key_of = [](std::uint32_t i) {
    LaunchKey key;
    key.block = {i, 1, 1};
    return key;
  };
  std::atomic<std::uint32_t> inserted{0};
  std::thread reader([&] {
    for (std::uint32_t seen = 0; seen < 3000; seen = inserted.load(std::memory_order_acquire)) {
      for (std::uint32_t i = 0; i < seen; i += 97) {
        if (cache.find(key_of(i)) == nullptr) std::abort();
      }
    }
  });
  for (std::uint32_t i = 0; i < 3000; ++i) {
    cache.insert(&bindings.emplace_back(key_of(i)));
    inserted.store(i + 1, std::memory_order_release);
  }
  reader.join();
  CHECK(cache.size() == 3000);
}
