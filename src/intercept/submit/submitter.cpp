#include "intercept/submit/submitter.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <exception>

#include "gpu/driver/launch_shape.hpp"
#include "host/own_thread.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/submit/order_attributes.hpp"

namespace contextune::intercept {
namespace {

constexpr long watch_every_ns = 25'000;

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
                     const contextune_frontend* frontend, Say say)
    : driver_(driver),
      launcher_(launcher),
      kernels_(kernels),
      captures_(captures),
      frontend_(frontend),
      holdable_(driver, memory),
      obstacles_(std::move(say)),
      graphs_(driver) {}

void Submitter::use(Submission submission) noexcept {
  Lock lock(mutex_);
  if (frontend_.is_stopped() || !frontend_.is_there()) return;
  if (!graphs_.possible() || obstacles_.gave_up()) submission.gathered = 0;
  if (submission == submission_) return;
  hand_over(lock);
  submission_ = submission;
  last_.forget();  // of launches as written nothing is heard
  on_.store(submission != Submission{}, std::memory_order_relaxed);
  publish();
}

CUstream Submitter::stream_for(const contextune_launch& call) noexcept {
  if (call.stream != nullptr) return call.stream;
  return is_per_thread_form(call.fn) ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

LaunchStream Submitter::stream_of(const contextune_launch& call) const noexcept {
  LaunchStream stream;
  (void)driver_.cuCtxGetCurrent(&stream.context);
  stream.handle = stream_for(call);
  if (stream.handle == CU_STREAM_PER_THREAD) stream.thread = this_thread_number();
  return stream;
}

CUresult Submitter::launch(const contextune_launch& call, SubmittedKernelCache& cache) noexcept {
  SubmittedKernel* kernel = nullptr;
  const bool captured = captures_.possible();
  const LaunchStream stream = stream_of(call);
  if (!captured && stream.context != nullptr && is_ordinary(call))
    kernel = kernels_.find(call.function, stream.context, cache);
  Lock lock(mutex_);
  if (kernel != nullptr && submission_.chained) kernel->see();
  if (frontend_.is_unguarded()) obstacles_.unguarded();
  if (kernel != nullptr && is_plain(call) && may_be_held(call, *kernel, stream)) {
    hold(call, *kernel, stream);
    if (batches_.held().size() >= submission_.gathered) {
      deadline_.in_time();
      hand_over(lock);
    }
    return batches_.take_failure();
  }
  hand_over(lock, &stream);
  const CUresult result = launch_now(call, kernel, stream, lock);
  return result == CUDA_SUCCESS ? batches_.take_failure() : result;
}

CUresult Submitter::launch_now(const contextune_launch& call, SubmittedKernel* kernel,
                               const LaunchStream& stream, Lock& lock) noexcept {
  const bool chained = kernel != nullptr && submission_.chained && !frontend_.is_unguarded() &&
                       kernel->may_follow(submission_.ordinary) && last_.may_be_followed_on(stream);
  last_.begin(stream, kernel != nullptr && kernel->may_be_followed(), lock);
  const std::uint64_t shapes = holdable_.shapes();
  publish();
  lock.unlock();
  const CUresult result = chained ? launch_chained(call) : launcher_.as_written(call);
  lock.lock();
  last_.end(result == CUDA_SUCCESS);
  if (chained) {
    ++totals_.chained;
    kernel->chained.fetch_add(1, std::memory_order_relaxed);
  }
  if (result == CUDA_SUCCESS && kernel != nullptr && is_plain(call) && submission_.gathered != 0)
    holdable_.accept(call, *kernel, shapes);
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

bool Submitter::may_be_held(const contextune_launch& call, const SubmittedKernel& kernel,
                            const LaunchStream& stream) noexcept {
  if (submission_.gathered < 2 || frontend_.is_unguarded() || last_.any_under_way() ||
      batches_.is_handing_over() || !holdable_.has(call, kernel, stream.context) ||
      !batches_.has_room_for(kernel, stream)) {
    return false;
  }
  const std::uint64_t now = monotonic_ns();
  if (batches_.held().empty() && (deadline_.pauses(now) || !holdable_.is_plain(stream)))
    return false;
  return holdable_.is_busy(stream, now);
}

void Submitter::hold(const contextune_launch& call, SubmittedKernel& kernel,
                     const LaunchStream& stream) {
  const bool chained =
      submission_.chained && kernel.may_follow(submission_.ordinary) && batches_.may_be_followed();
  if (chained) kernel.chained.fetch_add(1, std::memory_order_relaxed);
  batches_.hold(kernel, call, stream, chained);
  ++totals_.held;
  if (batches_.held().size() > 1) return;
  publish();
  if (deadline_.has_thread()) return deadline_.wake();
  try {
    host::start_own_thread("contextune-hold", [this] { watch_deadline(); });
    deadline_.set_thread();
  } catch (const std::exception& error) {
    give_up_gathering(std::string("no thread could be started that keeps the deadline (") +
                      error.what() + ")");
  }
}

void Submitter::give_up_gathering(const std::string& why) noexcept {
  submission_.gathered = 0;
  obstacles_.give_up(why);
}

void Submitter::publish() noexcept {
  frontend_.publish(!batches_.held().empty() || batches_.is_handing_over() ||
                    (last_.is_launch() && submission_.chained));
}

void Submitter::hand_over(bool asks) noexcept {
  if (!frontend_.is_there()) return;
  Lock lock(mutex_);
  deadline_.in_time();
  hand_over(lock);
  if (!asks) last_.forget();
  publish();
}

void Submitter::want_other_calls(bool wanted) noexcept {
  const Lock lock(mutex_);
  frontend_.want(wanted);
  if (frontend_.is_there()) publish();
}

void Submitter::hand_over(Lock& lock, const LaunchStream* next) noexcept {
  // Whoever comes meanwhile must not overtake what is on its way.
  if (!batches_.await(lock, next)) {
    // It is full, and may be so because of this thread.
    give_up_gathering("a stream has taken nothing for two seconds");
    return;
  }
  if (batches_.is_handing_over()) return;  // nothing is held meanwhile
  if (batches_.held().empty()) return;
  const bool is_whole = batches_.held().size() >= submission_.gathered;
  LaunchBatch& batch = batches_.begin();
  const LaunchStream& stream = batches_.handed_stream();
  last_.forget();  // a graph is
  ++totals_.batches;
  lock.unlock();
  {
    const gpu::CurrentContext current(driver_, stream.context);
    if (batch.size() == 1 || !graphs_.launch(batch, stream.context, stream.handle, is_whole))
      launch_singly(batch, stream);
  }
  lock.lock();
  if (const char* const why = graphs_.obstacle()) give_up_gathering(why);
  if (const std::string failure = graphs_.take_failure(); !failure.empty()) obstacles_.say(failure);
  batches_.end();
  holdable_.set_busy(monotonic_ns());
  publish();
}

void Submitter::launch_singly(LaunchBatch& batch, const LaunchStream& stream) noexcept {
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
    batches_.fail(result);
  }
  const Lock lock(mutex_);
  totals_.single += batch.size();
}

void Submitter::watch_deadline() noexcept {
  const gpu::RelaxedCapture relaxed(driver_);
  (void)prctl(PR_SET_TIMERSLACK, 1000UL);
  std::uint64_t seen = 0;
  Lock lock(mutex_);
  while (!frontend_.is_stopped()) {
    if (batches_.held().empty()) {
      deadline_.idle(lock);
    } else {
      deadline_.busy();
      if (totals_.held == seen) {
        // Nobody has launched since the last look.
        ++totals_.late;
        deadline_.late();
        hand_over(lock);
      }
    }
    seen = totals_.held;
    lock.unlock();
    timespec pause{0, watch_every_ns};
    (void)nanosleep(&pause, nullptr);
    lock.lock();
  }
}

void Submitter::forget_shapes() noexcept {
  const Lock lock(mutex_);
  holdable_.forget_shapes();
}

void Submitter::forget_stream() noexcept {
  if (!frontend_.is_there()) return;
  Lock lock(mutex_);
  hand_over(lock);
  last_.forget();
  holdable_.forget_streams();
  publish();
}

void Submitter::forget_kernels() noexcept {
  forget_stream();
  {
    const Lock lock(mutex_);
    holdable_.forget_context();
  }
  graphs_.clear();
  kernels_.invalidate();
}

void Submitter::stop() noexcept {
  Lock lock(mutex_);
  hand_over(lock);
  frontend_.stop();
  submission_ = {};
  last_.forget();
  on_.store(false, std::memory_order_relaxed);
  if (frontend_.is_there()) publish();
  deadline_.stop();
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
