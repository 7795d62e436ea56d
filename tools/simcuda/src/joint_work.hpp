#pragma once

#include <simcuda/simcuda.h>

#include <memory>

#include "contexts.hpp"

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

/// Puts joint work on a stream. @throws Failure{STREAM_CAPTURE_UNSUPPORTED}
void enqueue_joint_work(Stream& stream, const std::shared_ptr<JointWork>& work);

}  // namespace simcuda
