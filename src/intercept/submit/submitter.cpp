#include "intercept/submit/submitter.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "gpu/driver/launch_shape.hpp"
#include "host/own_thread.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/submit/order_attributes.hpp"

namespace contextune::intercept {
namespace {

constexpr std::uint64_t microsecond = 1000;
/// A GPU that had work so lately has some still: asking costs half a microsecond.
constexpr std::uint64_t busy_for_ns = 8 * microsecond;
constexpr std::uint64_t watch_every_ns = 25 * microsecond;
/// Without anything to watch for so long, our thread sleeps until it is woken.
constexpr int most_idle_looks = 80;
constexpr std::uint64_t most_late_in_a_row = 8;
constexpr std::uint64_t pause_ns = 20'000 * microsecond;

std::uint64_t monotonic_now_ns() {
  timespec time{};
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// The most attributes of a chained launch, with ours.
constexpr unsigned most_attributes = 8;

bool is_per_thread_form(contextune_fn fn) {
  return fn == contextune_fn_cuLaunchKernel_ptsz || fn == contextune_fn_cuLaunchKernelEx_ptsz;
}

/// Without anything that the program wants beside the launch itself.
bool is_plain(const contextune_launch& call) {
  switch (call.fn) {
    case contextune_fn_cuLaunchKernel:
    case contextune_fn_cuLaunchKernel_ptsz:
      return true;
    case contextune_fn_cuLaunchKernelEx:
    case contextune_fn_cuLaunchKernelEx_ptsz:
      return call.config->numAttrs == 0;
    default:
      return false;
  }
}

/// Ordered as a plain launch is.
bool is_ordinary(const contextune_launch& call) {
  if (is_plain(call)) return true;
  const bool has_attributes =
      call.fn == contextune_fn_cuLaunchKernelEx || call.fn == contextune_fn_cuLaunchKernelEx_ptsz;
  return has_attributes && call.config->numAttrs < most_attributes &&
         std::all_of(call.config->attrs, call.config->attrs + call.config->numAttrs, &leaves_order);
}

CUlaunchAttribute chaining() {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

}  // namespace

Submitter::Submitter(const gpu::Driver& driver, const Launcher& launcher, SubmittedKernels& kernels,
                     CaptureWatch& captures, const ProcessMemory& memory,
                     const contextune_frontend* frontend, NotGathered say)
    : driver_(driver),
      launcher_(launcher),
      kernels_(kernels),
      captures_(captures),
      held_(frontend == nullptr ? nullptr : frontend->held),
      unguarded_(frontend == nullptr ? nullptr : frontend->unguarded),
      say_(std::move(say)),
      outside_(driver, memory),
      graphs_(driver) {}

void Submitter::use(Submission submission) noexcept {
  Lock lock(mutex_);
  if (stopped_ || held_ == nullptr) return;
  if (!graphs_.possible() || gave_up_gathering_) submission.gathered = 0;
  if (submission == submission_) return;
  hand_over(lock);
  submission_ = submission;
  last_is_launch_ = false;  // of launches as written nothing is heard
  on_.store(submission != Submission{}, std::memory_order_relaxed);
  publish();
}

CUstream Submitter::stream_for(const contextune_launch& call) noexcept {
  if (call.stream != nullptr) return call.stream;
  return is_per_thread_form(call.fn) ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

Submitter::Stream Submitter::stream_of(const contextune_launch& call) const noexcept {
  Stream stream;
  (void)driver_.cuCtxGetCurrent(&stream.context);
  stream.handle = stream_for(call);
  if (stream.handle == CU_STREAM_PER_THREAD) stream.thread = this_thread_number();
  return stream;
}

bool Submitter::waits_for(const Stream& one, const Stream& other) noexcept {
  return one == other || one.handle == CU_STREAM_LEGACY || other.handle == CU_STREAM_LEGACY;
}

CUresult Submitter::launch(const contextune_launch& call, SubmittedKernelCache& cache) noexcept {
  SubmittedKernel* kernel = nullptr;
  const bool captured = captures_.possible();
  const Stream stream = stream_of(call);
  if (!captured && stream.context != nullptr && is_ordinary(call))
    kernel = kernels_.find(call.function, stream.context, cache);
  Lock lock(mutex_);
  if (kernel != nullptr && submission_.chained) kernel->see();
  if (__atomic_load_n(unguarded_, __ATOMIC_RELAXED) != 0 && !std::exchange(said_unguarded_, true)) {
    say("Launches are neither chained nor gathered any more: the program has obtained more "
        "functions of the driver than are watched.");
  }
  if (kernel != nullptr && is_plain(call) && may_be_held(call, *kernel, stream)) {
    hold(call, *kernel, stream);
    if (batch_->size() >= submission_.gathered) {
      late_in_a_row_ = 0;
      hand_over(lock);
    }
    return take_failure();
  }
  hand_over(lock, &stream);
  const CUresult result = launch_now(call, kernel, stream, lock);
  return result == CUDA_SUCCESS ? take_failure() : result;
}

bool Submitter::may_be_chained(const SubmittedKernel& kernel, const Stream& stream) const noexcept {
  return submission_.chained && __atomic_load_n(unguarded_, __ATOMIC_RELAXED) == 0 &&
         kernel.may_follow(submission_.ordinary) && last_is_launch_ && last_may_be_followed_ &&
         last_ == stream && launching_ == 0;
}

CUresult Submitter::launch_now(const contextune_launch& call, SubmittedKernel* kernel,
                               const Stream& stream, Lock& lock) noexcept {
  const bool chained = kernel != nullptr && may_be_chained(*kernel, stream);
  const bool may_be_followed = kernel != nullptr && kernel->may_be_followed();
  // Another thread's launch that began before may come to the stream after this one.
  last_is_launch_ = launching_ == 0;
  last_ = stream;
  last_may_be_followed_ = may_be_followed;
  if (!may_be_followed && launching_ != 0) {
    // A launch under way may be chained, to a kernel that this one must not come between.
    (void)handed_over_.wait_for(lock, std::chrono::milliseconds(100),
                                [this] { return launching_ == 0; });
  }
  ++launching_;
  const std::uint64_t shapes = shapes_;
  publish();
  lock.unlock();
  const CUresult result = chained ? launch_chained(call) : launcher_.as_written(call);
  lock.lock();
  --launching_;
  if (launching_ != 0) last_is_launch_ = false;
  handed_over_.notify_all();
  if (chained) {
    ++totals_.chained;
    kernel->chained.fetch_add(1, std::memory_order_relaxed);
  }
  if (result != CUDA_SUCCESS) {
    last_is_launch_ = false;
  } else if (kernel != nullptr && is_plain(call) && submission_.gathered != 0 &&
             shapes_ == shapes) {
    if (std::exchange(kernel->accepted_at, shapes) != shapes) {
      std::erase_if(kernel->accepted, [](const auto& one) { return one.shared_bytes != 0; });
    }
    if (!kernel->is_accepted(call) && kernel->accepted.size() < SubmittedKernel::most_shapes) {
      kernel->accepted.push_back(
          {{call.block[0], call.block[1], call.block[2]}, call.shared_bytes});
    }
  }
  return result;
}

CUresult Submitter::launch_chained(const contextune_launch& call) const noexcept {
  CUlaunchConfig config{};
  gpu::set_shape(config, call.grid, call.block, call.shared_bytes);
  config.hStream = call.stream;
  std::array<CUlaunchAttribute, most_attributes> attributes{chaining()};
  config.attrs = attributes.data();
  config.numAttrs = 1;
  for (unsigned i = 0; !is_plain(call) && i < call.config->numAttrs; ++i) {
    const CUlaunchAttribute& own = call.config->attrs[i];
    if (own.id != attributes[0].id) attributes[config.numAttrs++] = own;
  }
  return launcher_.kernel_ex(is_per_thread_form(call.fn))(&config, call.function,
                                                          call.kernel_params, call.extra);
}

bool Submitter::is_plain_stream(const Stream& stream) noexcept {
  if (plain_streams_.contains(stream)) return true;
  int priority = 0;
  if (stream.handle == CU_STREAM_PER_THREAD || driver_.cuStreamGetPriority == nullptr ||
      driver_.cuStreamGetPriority(stream.handle, &priority) != CUDA_SUCCESS || priority != 0) {
    return false;
  }
  if (driver_.cuStreamGetGreenCtx != nullptr) {
    CUgreenCtx green = nullptr;
    if (driver_.cuStreamGetGreenCtx(stream.handle, &green) != CUDA_SUCCESS || green != nullptr) {
      return false;
    }
  }
  if (driver_.cuStreamGetAttribute != nullptr) {
    CUstreamAttrValue value{};
    const auto has = [&](CUstreamAttrID attribute) {
      return driver_.cuStreamGetAttribute(stream.handle, attribute, &value) == CUDA_SUCCESS;
    };
    if (!has(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) || value.accessPolicyWindow.num_bytes != 0)
      return false;
    // A driver that knows of no domains has one.
    if (has(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN) &&
        value.memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT)
      return false;
    if (has(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) && value.memSyncDomainMap.default_ != 0)
      return false;
  }
  try {
    plain_streams_.insert(stream);
  } catch (const std::exception&) {
    // Asked again.
  }
  return true;
}

bool Submitter::is_idle(const Stream& stream) const noexcept {
  return driver_.cuStreamQuery(stream.handle) != CUDA_ERROR_NOT_READY;
}

bool Submitter::may_be_held(const contextune_launch& call, const SubmittedKernel& kernel,
                            const Stream& stream) noexcept {
  if (submission_.gathered < 2 || __atomic_load_n(unguarded_, __ATOMIC_RELAXED) != 0 ||
      !kernel.may_gather || launching_ != 0 || handing_over_ || call.extra != nullptr ||
      (call.kernel_params == nullptr && !kernel.parameters.empty()) ||
      (call.shared_bytes != 0 && kernel.accepted_at != shapes_) || !kernel.is_accepted(call) ||
      outside_.is_reached_by(call, kernel, stream.context)) {
    return false;
  }
  if (!batch_->empty() && (batch_stream_ != stream || !batch_->has_room_for(kernel))) return false;
  const std::uint64_t now = monotonic_now_ns();
  if (batch_->empty() &&
      (now < hold_again_ns_ || !batch_->has_room_for(kernel) || !is_plain_stream(stream))) {
    return false;
  }
  if (now - checked_ns_ < busy_for_ns) return true;
  checked_ns_ = now;
  return !is_idle(stream);
}

void Submitter::hold(const contextune_launch& call, SubmittedKernel& kernel, const Stream& stream) {
  const bool chained = submission_.chained && kernel.may_follow(submission_.ordinary) &&
                       !batch_->empty() && (*batch_)[batch_->size() - 1].kernel->may_be_followed();
  if (chained) kernel.chained.fetch_add(1, std::memory_order_relaxed);
  batch_stream_ = stream;
  batch_->add(kernel, call, chained);
  ++totals_.held;
  if (batch_->size() > 1) return;
  publish();
  if (!watching_) {
    try {
      host::start_own_thread("contextune-hold", [this] { watch_deadline(); });
      watching_ = true;
    } catch (const std::exception& error) {
      give_up_gathering(std::string("no thread could be started that keeps the deadline (") +
                        error.what() + ")");
    }
  } else if (asleep_) {
    asleep_ = false;
    wake_.notify_one();
  }
}

void Submitter::give_up_gathering(const std::string& why) noexcept {
  submission_.gathered = 0;
  if (std::exchange(gave_up_gathering_, true)) return;
  say("Launches are not gathered any more: " + why + ".");
}

void Submitter::say(const std::string& sentence) noexcept {
  try {
    if (say_) say_(sentence);
  } catch (const std::exception&) {
    // Not said, then.
  }
}

void Submitter::publish() noexcept {
  const bool any = !batch_->empty() || handing_over_ || (last_is_launch_ && submission_.chained) ||
                   wants_other_calls_;
  if (__atomic_load_n(held_, __ATOMIC_RELAXED) != static_cast<std::uint32_t>(any)) {
    __atomic_store_n(held_, static_cast<std::uint32_t>(any), __ATOMIC_RELEASE);
  }
}

void Submitter::hand_over(bool asks) noexcept {
  if (held_ == nullptr) return;
  Lock lock(mutex_);
  late_in_a_row_ = 0;
  hand_over(lock);
  if (!asks) last_is_launch_ = false;
  publish();
}

void Submitter::want_other_calls(bool wanted) noexcept {
  const Lock lock(mutex_);
  wants_other_calls_ = wanted && held_ != nullptr && !stopped_;
  if (held_ != nullptr) publish();
}

void Submitter::hand_over(Lock& lock, const Stream* next) noexcept {
  // Whoever comes meanwhile must not overtake what is on its way.
  constexpr std::chrono::seconds patience(2);
  if (handing_over_ && (next == nullptr || waits_for(*next, handed_stream_)) &&
      !handed_over_.wait_for(lock, patience, [this] { return !handing_over_; })) {
    // It is full, and may be so because of this thread.
    give_up_gathering("a stream has taken nothing for two seconds");
    return;
  }
  if (handing_over_) return;  // nothing is held meanwhile
  if (batch_->empty()) return;
  handing_over_ = true;
  const bool is_whole = batch_->size() >= submission_.gathered;
  std::swap(batch_, handed_);
  handed_stream_ = batch_stream_;
  last_is_launch_ = false;  // a graph is
  ++totals_.batches;
  lock.unlock();
  {
    const gpu::CurrentContext current(driver_, handed_stream_.context);
    if (handed_->size() == 1 ||
        !graphs_.launch(*handed_, handed_stream_.context, handed_stream_.handle, is_whole)) {
      launch_singly(*handed_, handed_stream_);
    }
  }
  lock.lock();
  if (const char* const why = graphs_.obstacle()) give_up_gathering(why);
  if (const std::string failure = graphs_.take_failure(); !failure.empty()) say(failure);
  handed_->clear();
  handing_over_ = false;
  checked_ns_ = monotonic_now_ns();
  publish();
  handed_over_.notify_all();
}

void Submitter::launch_singly(LaunchBatch& batch, const Stream& stream) noexcept {
  std::array<void*, SubmittedKernel::most_parameters> pointers;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const HeldLaunch& held = batch[i];
    batch.arguments_of(i, pointers.data());
    CUlaunchConfig config{};
    gpu::set_shape(config, held.grid, held.block, held.shared_bytes);
    config.hStream = stream.handle;
    CUlaunchAttribute attribute = chaining();
    config.attrs = &attribute;
    config.numAttrs = held.chained ? 1 : 0;
    const CUresult result =
        launcher_.kernel_ex(false)(&config, held.kernel->handle, pointers.data(), nullptr);
    if (result == CUDA_SUCCESS) continue;
    const Lock lock(mutex_);
    if (failure_ == CUDA_SUCCESS) failure_ = result;
  }
  const Lock lock(mutex_);
  totals_.single += batch.size();
}

void Submitter::watch_deadline() noexcept {
  const gpu::RelaxedCapture relaxed(driver_);
  (void)prctl(PR_SET_TIMERSLACK, 1000UL);
  std::uint64_t seen = 0;
  int idle_looks = 0;
  Lock lock(mutex_);
  while (!stopped_) {
    if (batch_->empty()) {
      if (++idle_looks > most_idle_looks) {
        asleep_ = true;
        wake_.wait(lock, [this] { return !asleep_ || stopped_; });
        idle_looks = 0;
      }
    } else {
      idle_looks = 0;
      if (totals_.held == seen) {
        // Nobody has launched since the last look.
        ++totals_.late;
        if (++late_in_a_row_ >= most_late_in_a_row) {
          hold_again_ns_ = monotonic_now_ns() + pause_ns;
          late_in_a_row_ = 0;
        }
        hand_over(lock);
      }
    }
    seen = totals_.held;
    lock.unlock();
    timespec pause{0, static_cast<long>(watch_every_ns)};
    (void)nanosleep(&pause, nullptr);
    lock.lock();
  }
}

void Submitter::forget_shapes() noexcept {
  const Lock lock(mutex_);
  ++shapes_;
}

void Submitter::forget_stream() noexcept {
  if (held_ == nullptr) return;
  Lock lock(mutex_);
  hand_over(lock);
  last_is_launch_ = false;
  plain_streams_.clear();
  publish();
}

void Submitter::forget_kernels() noexcept {
  forget_stream();
  {
    const Lock lock(mutex_);
    outside_.forget_context();
  }
  graphs_.clear();
  kernels_.invalidate();
}

void Submitter::stop() noexcept {
  Lock lock(mutex_);
  hand_over(lock);
  stopped_ = true;
  submission_ = {};
  wants_other_calls_ = false;
  last_is_launch_ = false;
  on_.store(false, std::memory_order_relaxed);
  if (held_ != nullptr) publish();
  wake_.notify_all();
  lock.unlock();
  graphs_.stop();
}

Submitter::Totals Submitter::totals() noexcept {
  Totals totals;
  {
    const Lock lock(mutex_);
    totals = totals_;
  }
  totals.graphs = graphs_.totals();
  return totals;
}

}  // namespace contextune::intercept
