#include "api/snapshot.hpp"

#include <cuda.h>

#include <cstdio>
#include <string>
#include <type_traits>

#include <contextune/error.hpp>

namespace contextune::api {

/// Entry points that nothing else of contextune needs.
struct Snapshot::Functions {
  decltype(&::cuPointerGetAttribute) pointer_attribute = nullptr;
  decltype(&::cuMemcpyDtoDAsync) copy = nullptr;
  decltype(&::cuStreamCreate) create_stream = nullptr;
  decltype(&::cuStreamDestroy) destroy_stream = nullptr;

  static const Functions& of(const gpu::Driver& driver) {
    static const Functions functions = [&driver] {
      Functions found;
      const auto find = [&driver](auto& function, const char* symbol) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
            driver.find_symbol(driver.library, symbol));
        if (function == nullptr) {
          throw Error(std::string("the driver has no ") + symbol +
                      ", so device memory cannot be restored; give `restore` as a callable");
        }
      };
      find(found.pointer_attribute, "cuPointerGetAttribute");
      find(found.copy, "cuMemcpyDtoDAsync_v2");
      find(found.create_stream, "cuStreamCreate");
      find(found.destroy_stream, "cuStreamDestroy_v2");
      return found;
    }();
    return functions;
  }
};

/// The copies of what belongs to one context.
class Snapshot::ContextCopies {
 public:
  ContextCopies(const gpu::Driver& driver, const Functions& functions, CUcontext context)
      : driver_(driver), functions_(functions), context_(context) {
    const gpu::CurrentContext current(driver_, context_);
    // A stream of our own: the program's work neither waits for it nor is waited for.
    check(driver_, functions_.create_stream(&stream_, CU_STREAM_NON_BLOCKING),
          "making a stream to restore memory with");
  }
  ~ContextCopies() {
    const gpu::CurrentContext current(driver_, context_);
    for (const Copy& copy : copies_) driver_.cuMemFree(copy.copy);
    functions_.destroy_stream(stream_);
  }
  ContextCopies(const ContextCopies&) = delete;
  ContextCopies& operator=(const ContextCopies&) = delete;

  [[nodiscard]] CUcontext context() const noexcept { return context_; }

  void add(const Span& span) {
    const gpu::CurrentContext current(driver_, context_);
    CUdeviceptr copy = 0;
    copies_.reserve(copies_.size() + 1);
    check(driver_, driver_.cuMemAlloc(&copy, span.size_bytes),
          "making room for a copy of the memory to be restored at " + describe(span));
    copies_.push_back({reinterpret_cast<CUdeviceptr>(span.pointer), copy, span.size_bytes});
  }

  /// Starts all copies. The body may use any stream, so nothing less than the whole context has to
  /// be complete before.
  void start(bool back) {
    const gpu::CurrentContext current(driver_, context_);
    check(driver_, driver_.cuCtxSynchronize(), "completing the work on memory to be restored");
    for (const Copy& copy : copies_) {
      check(driver_,
            functions_.copy(back ? copy.original : copy.copy, back ? copy.copy : copy.original,
                            copy.size_bytes, stream_),
            "copying memory to be restored");
    }
  }

  void complete() {
    const gpu::CurrentContext current(driver_, context_);
    check(driver_, driver_.cuStreamSynchronize(stream_), "copying memory to be restored");
  }

  [[nodiscard]] static std::string describe(const Span& span) {
    char text[64];
    std::snprintf(text, sizeof text, "%p (%zu bytes)", span.pointer, span.size_bytes);
    return text;
  }

 private:
  struct Copy {
    CUdeviceptr original = 0;
    CUdeviceptr copy = 0;
    std::size_t size_bytes = 0;
  };
  const gpu::Driver& driver_;
  const Functions& functions_;
  CUcontext context_;
  CUstream stream_ = nullptr;
  std::vector<Copy> copies_;
};

Snapshot::Snapshot(const gpu::Driver& driver, const std::vector<Span>& spans)
    : driver_(driver), functions_(Functions::of(driver)) {
  const gpu::RelaxedCapture relaxed(driver);
  for (const Span& span : spans) {
    if (span.size_bytes == 0) continue;
    CUcontext context = nullptr;
    if (functions_.pointer_attribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT,
                                     reinterpret_cast<CUdeviceptr>(span.pointer)) != CUDA_SUCCESS) {
      throw Error("the memory to be restored at " + ContextCopies::describe(span) +
                  " is not device memory; name device memory, or give `restore` as a callable");
    }
    // Memory of a pool belongs to no context.
    if (context == nullptr) driver_.cuCtxGetCurrent(&context);
    copies_in(context).add(span);
  }
  for (const auto& copies : contexts_) copies->start(false);
  for (const auto& copies : contexts_) copies->complete();
}

Snapshot::~Snapshot() = default;

Snapshot::ContextCopies& Snapshot::copies_in(CUcontext context) {
  for (const auto& copies : contexts_)
    if (copies->context() == context) return *copies;
  contexts_.push_back(std::make_unique<ContextCopies>(driver_, functions_, context));
  return *contexts_.back();
}

void Snapshot::restore() {
  const gpu::RelaxedCapture relaxed(driver_);
  for (const auto& copies : contexts_) copies->start(true);
  for (const auto& copies : contexts_) copies->complete();
}

}  // namespace contextune::api
