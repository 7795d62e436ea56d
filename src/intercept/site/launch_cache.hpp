#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "intercept/program/launch.hpp"

namespace contextune::intercept {

/// The key by which two launches look alike from outside: same kernel handle, same shape, same
/// attributes. Arguments are not part of it.
struct LaunchKey {
  CUfunction function = nullptr;
  CUcontext context = nullptr;
  Dim3 grid{};
  Dim3 block{};
  std::uint32_t shared_bytes = 0;
  std::uint32_t kind = 0;  ///< entry point: a cooperative launch is not a plain one
  std::uint64_t attributes_hash = 0;

  LaunchKey() = default;
  explicit LaunchKey(const Launch& launch) noexcept;
  [[nodiscard]] std::uint64_t hash() const noexcept;
  bool operator==(const LaunchKey&) const = default;
};

/// Open-addressed table from LaunchKey to `Entry*`, where an entry has a `const LaunchKey key`.
/// Insert-only: find() takes no lock and runs beside insert(); inserts are serialised by the
/// caller. Entries are not owned and must live as long as the table. Outgrown tables are kept until
/// the end, because a reader may still be in one; they add up to less than the last one.
template <class Entry>
class LaunchCache {
 public:
  LaunchCache() { table_.store(&publish(64), std::memory_order_release); }
  LaunchCache(const LaunchCache&) = delete;
  LaunchCache& operator=(const LaunchCache&) = delete;

  [[nodiscard]] Entry* find(const LaunchKey& key) const noexcept {
    const Table& table = *table_.load(std::memory_order_acquire);
    for (std::size_t at = key.hash() & table.mask;; at = (at + 1) & table.mask) {
      Entry* entry = table.slots[at].load(std::memory_order_acquire);
      if (entry == nullptr || entry->key == key) return entry;
    }
  }

  void insert(Entry* entry) {
    if ((size_ + 1) * 2 > table_.load(std::memory_order_relaxed)->mask + 1) grow();
    place(*table_.load(std::memory_order_relaxed), entry);
    ++size_;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Table {
    explicit Table(std::size_t capacity) : mask(capacity - 1), slots(capacity) {}
    std::size_t mask;
    std::vector<std::atomic<Entry*>> slots;
  };

  static void place(Table& table, Entry* entry) noexcept {
    std::size_t at = entry->key.hash() & table.mask;
    while (table.slots[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & table.mask;
    table.slots[at].store(entry, std::memory_order_release);
  }

  Table& publish(std::size_t capacity) {
    tables_.push_back(std::make_unique<Table>(capacity));
    return *tables_.back();
  }

  void grow() {
    const Table& old = *table_.load(std::memory_order_relaxed);
    Table& bigger = publish((old.mask + 1) * 2);
    for (const auto& slot : old.slots) {
      if (Entry* entry = slot.load(std::memory_order_relaxed)) place(bigger, entry);
    }
    table_.store(&bigger, std::memory_order_release);
  }

  std::vector<std::unique_ptr<Table>> tables_;
  std::size_t size_ = 0;
  std::atomic<Table*> table_{nullptr};
};

}  // namespace contextune::intercept
