#pragma once

#include "tuner_abi.hpp"

namespace simnccl {

/// The functions of a tuner plugin. At most one of the pointers is set; a version 6 is a version 5
/// here.
struct TunerFunctions {
  const TunerV5* v5 = nullptr;
  const TunerV4* v4 = nullptr;
  const TunerV3* v3 = nullptr;
};

/// One communicator's hold on the plugin of the process, loaded and unloaded as NCCL does: by
/// NCCL_TUNER_PLUGIN when a communicator needs it and it is not loaded; a failure is final. Only
/// the communicator that loaded it counts as one that may unload it, so it is unloaded when that
/// one ends and there has been no other, and then loaded anew for the next.
class TunerPlugin {
 public:
  TunerPlugin();
  ~TunerPlugin();
  TunerPlugin(const TunerPlugin&) = delete;
  TunerPlugin& operator=(const TunerPlugin&) = delete;

  [[nodiscard]] const TunerFunctions& functions() const { return functions_; }

 private:
  TunerFunctions functions_;
  bool loaded_it_ = false;
};

}  // namespace simnccl
