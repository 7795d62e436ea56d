#include "intercept/site/binding.hpp"

#include <algorithm>
#include <cstring>

#include "intercept/host/hash.hpp"

namespace contextune::intercept {
namespace {

constexpr std::ptrdiff_t most_of_kernel = 64;
constexpr std::size_t most_memos = 1024;

}  // namespace

void Resolved::set_variant(std::uint32_t config, std::unique_ptr<const Variant> variant) {
  // Modules that come and go mostly come back to the same place.
  for (const auto& known : owned_) {
    if (*known == *variant) return variants_[config].store(known.get(), std::memory_order_release);
  }
  variants_[config].store(variant.get(), std::memory_order_release);
  owned_.push_back(std::move(variant));
}

void Resolved::forget_variants() noexcept {
  for (std::size_t i = 0; i < site_.configs.size(); ++i) {
    variants_[i].store(nullptr, std::memory_order_release);
  }
}

Memo::Memo(std::uint64_t reads, std::span<const ArgumentLayout> layouts)
    : reads_(reads), slots_(reads == 0 ? 1 : 2 * most_answers) {
  for (std::size_t i = 0; i < layouts.size() && i < 64; ++i) {
    if ((reads >> i & 1U) != 0) read_.push_back({i, layouts[i]});
  }
}

bool Memo::hash_of(const Launch& launch, std::uint64_t& hash) const noexcept {
  hash = 0;
  for (const Argument& argument : read_) {
    const void* data = argument_of(launch, argument.index, argument.layout);
    if (data == nullptr) return false;
    hash = hash_bytes(hash, data, argument.layout.size_bytes);
  }
  return true;
}

bool Memo::agrees(const Launch& launch, const Resolved& answer) const noexcept {
  const std::byte* expected = answer.bytes().data();
  for (const Argument& argument : read_) {
    const void* data = argument_of(launch, argument.index, argument.layout);
    if (std::memcmp(data, expected, argument.layout.size_bytes) != 0) return false;
    expected += argument.layout.size_bytes;
  }
  return true;
}

Resolved* Memo::find(const Launch& launch) const noexcept {
  if (read_.empty()) return slots_[0].load(std::memory_order_acquire);
  std::uint64_t hash = 0;
  if (!hash_of(launch, hash)) return nullptr;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Resolved* answer = slots_[at].load(std::memory_order_acquire);
    if (answer == nullptr) return nullptr;
    if (answer->hash() == hash && agrees(launch, *answer)) return answer;
  }
}

Resolved* Memo::insert(const Launch& launch, Site& site) {
  if (Resolved* known = find(launch)) return known;
  if (all_.size() >= most_answers) return nullptr;
  std::uint64_t hash = 0;
  if (!hash_of(launch, hash)) return nullptr;
  std::vector<std::byte> bytes;
  for (const Argument& argument : read_) {
    const auto* data =
        static_cast<const std::byte*>(argument_of(launch, argument.index, argument.layout));
    bytes.insert(bytes.end(), data, data + argument.layout.size_bytes);
  }
  all_.push_back(std::make_unique<Resolved>(site, hash, std::move(bytes)));
  Resolved* answer = all_.back().get();
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & mask;
  slots_[at].store(answer, std::memory_order_release);
  return answer;
}

void Binding::mean(const KnownKernel* now) noexcept {
  kernel = now;
  memo.store(answers(), std::memory_order_release);
}

void Binding::forget_variants() noexcept {
  for (const KernelMemo& one : memos_)
    for (const auto& answer : one.memo->all()) answer->forget_variants();
}

Memo* Binding::answers() const noexcept {
  const auto last = std::find_if(memos_.rbegin(), memos_.rend(),
                                 [this](const KernelMemo& one) { return one.kernel == kernel; });
  return last == memos_.rend() ? nullptr : last->memo.get();
}

Memo* Binding::start_answers(std::uint64_t reads, std::string& why) {
  const auto of_kernel = std::count_if(
      memos_.begin(), memos_.end(), [this](const KernelMemo& one) { return one.kernel == kernel; });
  if (of_kernel >= most_of_kernel) {
    why = "The arguments that the kernel's rule reads change all the time.";
    return nullptr;
  }
  if (memos_.size() >= most_memos) {
    why = "The kernel's handle has meant too many kernels, one after another.";
    return nullptr;
  }
  auto made = std::make_unique<Memo>(reads, kernel->identity.parameters);
  return memos_.emplace_back(KernelMemo{kernel, std::move(made)}).memo.get();
}

}  // namespace contextune::intercept
