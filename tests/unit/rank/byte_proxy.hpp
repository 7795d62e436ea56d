#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

/// Stands between a rank and rank 0 and passes bytes on until it has had enough: then it breaks the
/// connection, or holds it and passes nothing on.
class ByteProxy {
 public:
  struct Limits {
    std::size_t to_target = std::numeric_limits<std::size_t>::max();
    std::size_t to_caller = std::numeric_limits<std::size_t>::max();
    bool then_holds = false;
  };

  /// Listens at `address`, calls `target` for each who calls.
  ByteProxy(const std::string& address, std::string target, Limits limits);
  ~ByteProxy();
  ByteProxy(const ByteProxy&) = delete;
  ByteProxy& operator=(const ByteProxy&) = delete;

  /// All that callers have sent so far.
  [[nodiscard]] std::vector<std::byte> recorded() const;

 private:
  void work();
  void serve(int caller);

  std::string target_;
  Limits limits_;
  int listener_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::vector<std::byte> recorded_;
  std::thread thread_;
};
