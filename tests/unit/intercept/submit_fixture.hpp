#pragma once

#include <atomic>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/submission/submission_state.hpp"
#include "fixture.hpp"
#include "intercept/submission/submission_tuning.hpp"
#include "intercept/submit/submitter.hpp"

/// A call of the driver that a Submission's parts made in the program's place.
struct SubmittedCall {
  std::string kernel;    ///< "graph" for a graph
  bool chained = false;  ///< with the programmatic attribute
  bool own = false;      ///< by a thread of ours
  bool operator==(const SubmittedCall&) const = default;
};

/// A program on the simulated driver with the parts that submit its launches, without the runtime
/// around them. Calls reach simcuda and are noted. The GPU is at work as the test says.
class Submitting {
  // As in a process, it never goes away: threads of ours may still know it.
  struct Parts;
  ScratchFolder folder_;
  Parts* parts_;

 public:
  using Load = contextune::intercept::SplicedLoads::Load;

  /// @param exclude the option of that name
  /// @param limits  of what is looked for
  explicit Submitting(contextune::Splice splice = contextune::Splice::Own,
                      const std::string& exclude = {},
                      const contextune::SubmissionLimits& limits = {});
  ~Submitting();
  Submitting(const Submitting&) = delete;
  Submitting& operator=(const Submitting&) = delete;

  /// Machine code of `step`, `scale`, `triggering`, `waiting`, `mapping` and `fencing`, which
  /// compute the same: y = x * factor + 1.
  static const std::string& image();

  /// Before `tuning` is started: an earlier run of this program has come so far.
  void found_earlier(const contextune::SubmissionState& state, bool same_software);

  CUresult load(contextune_fn fn, std::initializer_list<void*> arguments);
  CUmodule load_module(const std::string& bytes = image());
  [[nodiscard]] CUfunction function(const char* name) const;
  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) const;
  void synchronise();
  /// The program begins or ends a capture, as the frontend says.
  void capture(CUstream on, bool begins);

  /// y[i] = x[i] * factor + 1, by the kernel.
  CUresult launch(const char* kernel, CUstream on, float factor = 1, unsigned block = 32,
                  unsigned shared_bytes = 0);
  /// The same with an attribute of the program's.
  void launch_with(CUlaunchAttribute attribute, const char* kernel, CUstream on);
  CUresult launch_without_arguments(const char* kernel, CUstream on);
  /// As by a program whose launches are being looked at. Any thread.
  CUresult launch_watched(CUfunction kernel, CUstream on, bool by_nccl = false);
  /// Whether a launch of that kernel and block is known to be taken: the first of each is not held.
  void warm(CUstream on, std::initializer_list<const char*> kernels = {"step", "scale"});
  /// As the frontend reads it: not zero while launches are held.
  [[nodiscard]] std::uint32_t held() const;
  /// Calls since the last time.
  std::vector<SubmittedCall> take_calls();
  [[nodiscard]] float result() const;
  [[nodiscard]] std::string log();

  /// Runs `scenario` until our thread did not come in between, which it may after 50 us.
  template <typename Scenario>
  void without_deadline(Scenario scenario) {
    constexpr int most_tries = 400;
    for (int i = 0; i < most_tries; ++i) {
      const auto before = submitter->totals();
      const bool good = scenario();
      const auto after = submitter->totals();
      if (after.late == before.late && after.held > before.held) {
        CHECK(good);
        return;
      }
      submitter->hand_over();
      rest();
    }
    FAIL("our thread always came in between");
  }
  /// Until launches are held again, after many that were held in vain.
  static void rest();

  double seconds_for_loads = 1;
  bool refuses_changed = false;  ///< the driver takes the program's images only
  std::vector<std::string> refusals;
  std::vector<std::string> not_gathered;  ///< why not any more
  std::vector<std::string> not_chained;   ///< graphs of the program's, and why
  const void* given = nullptr;            ///< the image that the driver was given last
  std::string given_bytes;                ///< of it, as many as the program's has
  std::uint32_t& unguarded;
  bool& store_breaks;
  contextune::gpu::Driver& driver;
  contextune::intercept::SplicedLoads* loads;
  contextune::intercept::SubmittedKernels* submitted;
  contextune::intercept::ProcessMemory* memory;  ///< empty: nobody notes what simcuda gives
  contextune::intercept::Submitter* submitter;
  contextune::intercept::GraphTable* graphs;
  contextune::intercept::ChainedGraphs* chained_graphs;
  contextune::intercept::SubmissionTuning* tuning;
  contextune::intercept::SubmittedKernelCache cache;
  CUmodule module = nullptr;
  CUdeviceptr x = 0;

  static inline std::atomic<bool> busy{true};
  /// Before a launch of ours reaches the driver.
  static inline std::function<void(const SubmittedCall&)> on_call;
};
