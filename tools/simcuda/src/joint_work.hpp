#pragma once

#include <simcuda/simcuda.h>

#include <functional>
#include <memory>

#include "timeline.hpp"

namespace simcuda {

/// Holds a piece of joint work, see simcuda.h, and releases it.
class JointWork {
 public:
  explicit JointWork(const simcuda_joint_work& work) : work_(work) {}
  ~JointWork() { work_.release(work_.data); }
  JointWork(const JointWork&) = delete;
  JointWork& operator=(const JointWork&) = delete;
  const simcuda_joint_work* operator->() const { return &work_; }

 private:
  simcuda_joint_work work_;
};

/// Puts joint work on a stream that is not being captured. `report` gets its span once that is
/// known.
void run_joint_work(Stream& stream, const std::shared_ptr<JointWork>& work, double utilisation,
                    std::function<void(const Span&)> report);

}  // namespace simcuda
