#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "intercept/program/arguments.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/program/variant.hpp"
#include "intercept/site/launch_cache.hpp"
#include "intercept/site/site.hpp"

namespace contextune::intercept {

/// Launches of one shape whose arguments agree in all bytes that the site's rule looks at: which
/// site they are, and how each config launches them. Variants appear one by one; null: not made
/// yet.
class Resolved {
 public:
  Resolved(Site& site, std::uint64_t hash, std::vector<std::byte> bytes)
      : site_(site),
        hash_(hash),
        bytes_(std::move(bytes)),
        variants_(std::make_unique<std::atomic<const Variant*>[]>(site.configs.size())) {}

  [[nodiscard]] Site& site() const noexcept { return site_; }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

  /// @param config not 0, which is the launch as written
  [[nodiscard]] const Variant* variant(std::uint32_t config) const noexcept {
    return variants_[config].load(std::memory_order_acquire);
  }
  /// Serialised by the caller.
  void set_variant(std::uint32_t config, std::unique_ptr<const Variant> variant);
  /// Modules have gone: the functions of the variants may mean others by now. Serialised likewise.
  void forget_variants() noexcept;

 private:
  Site& site_;
  std::uint64_t hash_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<std::atomic<const Variant*>[]> variants_;
  std::vector<std::unique_ptr<const Variant>> owned_;
};

/// Answers of a rule, by the argument bytes that it read. find() takes no lock and runs beside
/// insert(); inserts are serialised by the caller. An answer is never given for arguments that
/// differ in a byte that was read.
class Memo {
 public:
  /// @param reads bit i: argument i was read
  Memo(std::uint64_t reads, std::span<const ArgumentLayout> layouts);

  [[nodiscard]] Resolved* find(const Launch& launch) const noexcept;

  /// An answer for the arguments of that launch, made unless it is there. Null: full.
  Resolved* insert(const Launch& launch, Site& site);

  [[nodiscard]] std::uint64_t reads() const noexcept { return reads_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Resolved>>& all() const noexcept { return all_; }

 private:
  struct Argument {
    std::size_t index;
    ArgumentLayout layout;
  };
  static constexpr std::size_t most_answers = 1024;

  /// False: an argument cannot be found.
  [[nodiscard]] bool hash_of(const Launch& launch, std::uint64_t& hash) const noexcept;
  [[nodiscard]] bool agrees(const Launch& launch, const Resolved& answer) const noexcept;

  std::uint64_t reads_;
  std::vector<Argument> read_;
  std::vector<std::unique_ptr<Resolved>> all_;
  std::vector<std::atomic<Resolved*>> slots_;
};

/// Launches of one shape in one region.
struct Binding {
  enum class Kind : std::uint8_t {
    AsWritten,  ///< no site
    Tuned       ///< ask the memo
  };

  explicit Binding(const LaunchKey& launch_key) : key(launch_key) {}

  [[nodiscard]] bool is_as_written() const noexcept {
    return kind.load(std::memory_order_relaxed) == Kind::AsWritten;
  }
  /// Whether one site has all launches of this shape.
  [[nodiscard]] bool ignores_arguments() const noexcept {
    const Memo* answers = memo.load(std::memory_order_acquire);
    return answers != nullptr && answers->reads() == 0;
  }

  // Under the site table's lock:
  /// The handle means that kernel now; answers for it are there again, without their variants.
  void mean(const KnownKernel* now) noexcept;
  void forget_variants() noexcept;
  /// Where answers for the kernel go; null: nowhere yet.
  [[nodiscard]] Memo* answers() const noexcept;
  /// Answers by other arguments of the kernel from now on. Null: there have been too many, which
  /// `why` tells.
  [[nodiscard]] Memo* start_answers(std::uint64_t reads, std::string& why);

  const LaunchKey key;
  std::atomic<std::uint64_t> epoch{0};  ///< of the kernel table, when this was made
  std::atomic<Kind> kind{Kind::AsWritten};
  std::atomic<const Memo*> memo{nullptr};
  std::atomic<std::uint16_t> slot{0};  ///< in discovery

  // Under the lock again:
  const KnownKernel* kernel = nullptr;
  KnobProvider* provider = nullptr;

 private:
  struct KernelMemo {
    const KnownKernel* kernel;
    std::unique_ptr<Memo> memo;
  };
  std::vector<KernelMemo> memos_;  ///< the last one of a kernel is in use while the handle means it
};

}  // namespace contextune::intercept
