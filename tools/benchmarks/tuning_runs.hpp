#pragma once

#include <string>

#include <contextune/config.hpp>
#include <contextune/config_space.hpp>

namespace tuning_bench {

/// The region that is tuned: an axpy, then a row softmax over what it wrote, 4096 x 1024 floats.
inline constexpr int rows = 4096;
inline constexpr int columns = 1024;

/// 12 configs: block and blocks an SM of a grid-stride loop.
[[nodiscard]] contextune::ConfigSpace axpy_space();
/// 5 configs: threads a row.
[[nodiscard]] contextune::ConfigSpace softmax_space();

/// What differs between a real GPU and the simulated one.
class Gpu {
 public:
  virtual ~Gpu() = default;

  /// Makes the context and the data, and launches every config once, so that no loading of code is
  /// measured later. Returns the GPU's name. @throws std::runtime_error if there is none
  virtual std::string prepare() = 0;
  [[nodiscard]] virtual bool simulated() const = 0;

  /// Launches; 0 for success.
  virtual int axpy(const contextune::Config& config) = 0;
  virtual int softmax(const contextune::Config& config) = 0;

  /// Launches the region `times` times and gives the seconds of one.
  virtual double time_region(const contextune::Config& axpy, const contextune::Config& softmax,
                             int times) = 0;
  /// Whether what the region wrote is right.
  virtual bool check() = 0;
  virtual void synchronise() = 0;
};

/// The whole program.
int run(int argc, char** argv, Gpu& gpu);

}  // namespace tuning_bench
