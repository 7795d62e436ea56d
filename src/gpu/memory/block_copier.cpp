#include "gpu/memory/block_copier.hpp"

#include <algorithm>
#include <array>

#include <contextune/error.hpp>

#include "gpu/memory/footprint.hpp"

namespace contextune::gpu {
namespace {

// A call of the driver takes as long as copying this much.
constexpr std::size_t large_for_driver = std::size_t{8} << 20U;

// A cache keeps nothing else beside this much, whoever copies it.
constexpr std::size_t large_for_cache = std::size_t{1} << 30U;

// So few small ones are the driver's too: they need no kernel to be loaded.
constexpr std::size_t few = 16;

// The kernel starts early, and is launched ever more rarely. A smaller first launch costs small
// work more than it gains.
constexpr std::size_t first_slice = 1024;
constexpr std::size_t largest_slice = 32768;

}  // namespace

BlockCopier::BlockCopier(const Driver& driver, CUcontext context, BlockKernels& kernels)
    : driver_(driver), kernels_(kernels), stream_(driver, context), work_(driver, context) {}

BlockCopier::~BlockCopier() {
  if (stuck()) work_.abandon();
}

void BlockCopier::start(std::size_t num_blocks, std::string_view what, Large large) {
  what_ = what;
  if (stuck()) throw Error(std::string(what_) + ": an earlier copy has not ended yet");
  num_blocks_ = num_blocks;
  large_.clear();
  small_.clear();
  launched_ = written_ = 0;
  slice_ = first_slice;
  large_bytes_ = large == Large::ByKernel ? large_for_cache : large_for_driver;
  many_ = large == Large::ByKernel && load_kernel();
  if (!many_) large_bytes_ = large_for_driver;
}

bool BlockCopier::load_kernel() {
  if (!use_kernel_) return false;
  try {
    if (kernel_ == nullptr) kernel_ = kernels_.copy();
    work_.reserve(num_blocks_ * sizeof(Copy));
  } catch (const Error&) {  // the driver alone is slower, but as exact
    use_kernel_ = false;
  }
  return use_kernel_;
}

void BlockCopier::add(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  const Copy copy{to, from, bytes};
  const bool large = bytes >= large_bytes_ || (many_ && !use_kernel_);
  if (large) large_.push_back(copy);
  if (large) return copy_by_driver(copy);
  if (many_) return copy_by_kernel(copy);
  small_.push_back(copy);
  if (small_.size() <= few) return;
  many_ = true;
  const bool by_kernel = load_kernel();
  for (const Copy& one : small_) by_kernel ? copy_by_kernel(one) : copy_by_driver(one);
  if (!by_kernel) large_.insert(large_.end(), small_.begin(), small_.end());
  small_.clear();
}

void BlockCopier::again() {
  if (stuck()) throw Error(std::string(what_) + ": an earlier copy has not ended yet");
  launched_ = 0;
  if (written_ != 0) launch();
  for (const Copy& copy : large_) copy_by_driver(copy);
}

void BlockCopier::copy_by_driver(const Copy& copy) {
  const RelaxedCapture relaxed(driver_);
  const CurrentContext current(driver_, stream_.context());
  check(driver_, driver_.cuMemcpyAsync(copy.to, copy.from, copy.bytes, stream_.handle()), what_);
}

void BlockCopier::copy_by_kernel(const Copy& copy) {
  auto* work = static_cast<Copy*>(work_.data());
  for (std::size_t offset = 0; offset < copy.bytes; offset += Footprint::block_bytes) {
    work[written_++] = {copy.to + offset, copy.from + offset,
                        std::min(Footprint::block_bytes, copy.bytes - offset)};
  }
  if (written_ - launched_ >= slice_) launch();
}

void BlockCopier::launch() {
  const RelaxedCapture relaxed(driver_);
  const CurrentContext current(driver_, stream_.context());
  void* work = static_cast<Copy*>(work_.data()) + launched_;
  std::array<void*, 1> arguments{&work};
  const auto blocks = static_cast<unsigned>(written_ - launched_);
  check(driver_,
        driver_.cuLaunchKernel(kernel_, blocks, 1, 1, BlockKernels::copy_threads, 1, 1, 0,
                               stream_.handle(), arguments.data(), nullptr),
        what_);
  launched_ = written_;
  slice_ = std::min(2 * slice_, largest_slice);
}

void BlockCopier::finish(Deadline deadline) {
  for (const Copy& copy : small_) copy_by_driver(copy);
  if (launched_ != written_) launch();
  stream_.wait(deadline, what_);
}

void BlockCopier::give_up(Deadline deadline) noexcept {
  if (stuck()) return;
  try {
    stream_.wait(deadline, what_);
  } catch (const std::exception&) {  // failed or stuck: nothing more to do about it
  }
}

}  // namespace contextune::gpu
