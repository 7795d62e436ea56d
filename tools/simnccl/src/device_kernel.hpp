#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <utility>

#include "communicator.hpp"

namespace simnccl {

/// One execution of a kernel, as simcuda_joint_work has it. The driver is locked in every call.
class KernelRun {
 public:
  KernelRun() = default;
  virtual ~KernelRun() = default;
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  virtual void arrive(double start) = 0;
  [[nodiscard]] virtual bool may_post() const = 0;
  virtual void post() = 0;
  [[nodiscard]] virtual bool may_finish(double& end) = 0;
  virtual void finish() = 0;
};

/// What a launch of one of the library's kernels does each time it runs: once, or, when it was
/// captured, in every launch of its graph.
class KernelPlan {
 public:
  explicit KernelPlan(std::shared_ptr<Communicator> comm) : comm_(std::move(comm)) {}
  virtual ~KernelPlan() = default;
  KernelPlan(const KernelPlan&) = delete;
  KernelPlan& operator=(const KernelPlan&) = delete;

  /// Called with the driver locked.
  [[nodiscard]] virtual std::unique_ptr<KernelRun> begin() const = 0;
  [[nodiscard]] const std::shared_ptr<Communicator>& comm() const { return comm_; }

 private:
  std::shared_ptr<Communicator> comm_;
};

/// How one of the kernels is launched. `name` is as in kernel_name.
struct KernelShape {
  std::string name;
  unsigned channels = 0, threads = 0;
};

/// The kernel that the real library takes: many run what is not in their names.
[[nodiscard]] std::string kernel_name(int function, int algorithm, ncclDataType_t type);

/// Loads the kernels into the driver, once a process. @throws Error
void load_kernels();

/// Launches a kernel on a stream through the driver's interface, as NCCL does: whoever wraps that
/// sees it. @throws Error
void launch_kernel(std::unique_ptr<KernelPlan> plan, const KernelShape& shape, CUstream stream);

/// The communicator ends: its captured kernels cannot run any more.
void forget_kernels_of(const Communicator& comm);

}  // namespace simnccl
