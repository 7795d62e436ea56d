#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

enum class StreamKind { Legacy, PerThread, Blocking, NonBlocking };

/// What is over before what, in a program of several streams. It follows from the rules of CUDA
/// that a program may rely on: a stream is in order, an event stands for what its stream had been
/// given, the legacy stream and blocking streams wait for each other, and what the host has waited
/// for is over for everybody. Nothing else orders anything.
class Ordering {
 public:
  /// For each stream, how many of its operations are over.
  using Moment = std::vector<std::uint32_t>;
  /// One operation.
  struct Step {
    std::size_t stream = 0;
    std::uint32_t number = 0;  ///< in its stream, from 1
  };

  explicit Ordering(std::vector<StreamKind> kinds);

  /// Work goes to a stream.
  Step submit(std::size_t stream);
  /// What an event that is recorded now will stand for.
  [[nodiscard]] Moment record(std::size_t stream) const;
  void wait(std::size_t stream, const Moment& moment);
  void host_waits(const Moment& moment);
  /// Everything is over for everybody.
  void join();

  /// Whether `step` is over when the next work of the stream begins.
  [[nodiscard]] bool is_over(const Step& step, std::size_t stream) const;
  [[nodiscard]] bool is_over_for_host(const Step& step) const;

 private:
  [[nodiscard]] Moment known(std::size_t stream) const;

  std::vector<StreamKind> kinds_;
  Moment given_;                ///< how many operations each stream was given
  Moment host_;                 ///< what the host knows to be over
  std::vector<Moment> waited_;  ///< what each stream was told to wait for
  std::vector<Moment> last_;    ///< what the last work of each stream stands for
};

/// Whether an event of this moment stands for `step` too.
[[nodiscard]] bool holds(const Ordering::Moment& moment, const Ordering::Step& step);
