#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <vector>

#include "plan.hpp"

/// The memory of one planned program, gone with it: on the device by every way that there is, and
/// pinned on the host. In the beginning it holds values that only the seed says.
class ProgramMemory {
 public:
  explicit ProgramMemory(const Plan& plan);
  ~ProgramMemory();
  ProgramMemory(const ProgramMemory&) = delete;
  ProgramMemory& operator=(const ProgramMemory&) = delete;

  [[nodiscard]] CUmodule module(std::size_t module) const { return modules_[module]; }
  [[nodiscard]] CUdeviceptr memory(std::size_t memory) const { return device_[memory]; }
  [[nodiscard]] CUdeviceptr buffer(std::size_t buffer) const;
  [[nodiscard]] std::uint32_t* pinned(std::size_t pinned) const { return host_[pinned]; }

  /// Of all memory, on an idle GPU. Addresses in it count by what they stand for.
  [[nodiscard]] std::uint64_t digest() const;

 private:
  [[nodiscard]] CUmodule load_module(std::size_t module) const;
  [[nodiscard]] CUdeviceptr allocate(std::size_t memory);
  [[nodiscard]] CUdeviceptr publish(std::size_t memory);
  [[nodiscard]] CUdeviceptr map(std::size_t memory);
  void release(std::size_t memory);
  void fill();

  const Plan& plan_;
  std::vector<CUmodule> modules_;  ///< those of the region first
  CUmemoryPool pool_ = nullptr;
  std::map<std::size_t, CUmemGenericAllocationHandle> mapped_;  ///< by memory
  std::vector<CUdeviceptr> device_;
  std::vector<std::uint32_t*> host_;
};

/// Goes on with a digest.
[[nodiscard]] std::uint64_t add_to_digest(std::uint64_t digest, const void* data,
                                          std::size_t bytes);
constexpr std::uint64_t empty_digest = 14695981039346656037U;
