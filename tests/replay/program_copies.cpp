// Copies of a planned program, and what it does that cannot be repeated.
#include <algorithm>
#include <thread>

#include "check.hpp"
#include "program.hpp"
#include "random.hpp"

void Program::copy_from_host(const Action& action) {
  const CUdeviceptr to = place(action.to, action);
  std::vector<std::uint8_t> own;
  const void* from = memory_.pinned(action.pinned);
  if (action.host == Action::Host::Pageable) {
    Random random(plan_.seed + action.value + visits_);
    own.resize(action.bytes);
    for (std::uint8_t& byte : own) byte = static_cast<std::uint8_t>(random.bits());
    from = own.data();
  }
  const auto address = reinterpret_cast<CUdeviceptr>(from);
  switch (action.call) {
    case Action::CopyCall::Async:
      check(calls(action).copy_from_host(to, from, action.bytes, stream(action)),
            "cuMemcpyHtoDAsync");
      break;
    case Action::CopyCall::Waiting:
      check(cuMemcpyHtoD_v2(to, from, action.bytes), "cuMemcpyHtoD");
      break;
    case Action::CopyCall::AnyKind:
      check(calls(action).copy(to, address, action.bytes, stream(action)), "cuMemcpyAsync");
      break;
    case Action::CopyCall::AnyKindWaiting:
      check(cuMemcpy(to, address, action.bytes), "cuMemcpy");
      break;
  }
  // Pageable memory was read before the call was back.
  std::fill(own.begin(), own.end(), std::uint8_t{0xa5});
}

void Program::copy_on_device(const Action& action) {
  const CUdeviceptr to = place(action.to, action);
  const CUdeviceptr from = memory_.buffer(action.from);
  switch (action.call) {
    case Action::CopyCall::Async:
      return check(calls(action).copy_on_device(to, from, action.bytes, stream(action)),
                   "cuMemcpyDtoDAsync");
    case Action::CopyCall::Waiting:
      return check(cuMemcpyDtoD_v2(to, from, action.bytes), "cuMemcpyDtoD");
    case Action::CopyCall::AnyKind:
      return check(calls(action).copy(to, from, action.bytes, stream(action)), "cuMemcpyAsync");
    case Action::CopyCall::AnyKindWaiting:
      return check(cuMemcpy(to, from, action.bytes), "cuMemcpy");
  }
}

void Program::copy_to_host(const Action& action) {
  const CUdeviceptr from = place(action.from, action);
  void* to = memory_.pinned(action.pinned);
  if (action.host == Action::Host::Pageable) {
    to = results_.emplace_back(action.bytes).data();
  }
  if (action.call == Action::CopyCall::Waiting) {
    check(cuMemcpyDtoH_v2(to, from, action.bytes), "cuMemcpyDtoH");
  } else if (action.call == Action::CopyCall::AnyKind) {
    check(calls(action).copy(reinterpret_cast<CUdeviceptr>(to), from, action.bytes, stream(action)),
          "cuMemcpyAsync");
  } else {
    check(calls(action).copy_to_host(to, from, action.bytes, stream(action)), "cuMemcpyDtoHAsync");
  }
}

void Program::set(const Action& action) {
  const CUdeviceptr to = memory_.buffer(action.to);
  const bool waiting = action.call == Action::CopyCall::Waiting;
  const StreamCalls& to_stream = calls(action);
  const std::size_t words = action.words;
  switch (action.set_bits) {
    case 8: {
      const auto value = static_cast<unsigned char>(action.value);
      return check(waiting ? cuMemsetD8_v2(to, value, words * 4 - 1)
                           : to_stream.set8(to, value, words * 4 - 1, stream(action)),
                   "cuMemsetD8");
    }
    case 16: {
      const auto value = static_cast<unsigned short>(action.value * 257);
      return check(waiting ? cuMemsetD16_v2(to, value, words * 2 - 1)
                           : to_stream.set16(to, value, words * 2 - 1, stream(action)),
                   "cuMemsetD16");
    }
    case 32:
      return check(waiting ? cuMemsetD32_v2(to, action.value, words)
                           : to_stream.set32(to, action.value, words, stream(action)),
                   "cuMemsetD32");
    default: {
      // Rows of 16 words, of which 7 are set.
      const std::size_t rows = (words + 8) / 16;
      if (rows == 0) return;
      return check(waiting ? cuMemsetD2D32_v2(to, 64, action.value, 7, rows)
                           : to_stream.set_rows(to, 64, action.value, 7, rows, stream(action)),
                   "cuMemsetD2D32");
    }
  }
}

void Program::write_results(const Action& action) {
  for (std::vector<std::uint8_t>& result : results_) {
    for (std::uint8_t& byte : result) byte ^= 0x3c;
  }
  if (action.value == 0) return;
  for (std::size_t i = 0; i < plan_.pinned.size(); ++i) {
    const PinnedPlan& plan = plan_.pinned[i];
    if (!plan.result || plan.witness) continue;
    for (std::uint32_t word = 0; word < plan.words; ++word) memory_.pinned(i)[word] ^= 0x3c3c3c3c;
  }
}

void Program::wait_for_value(const Action& action) {
  const CUdeviceptr to = memory_.buffer(action.to);
  check(calls(action).write_value(stream(action), to, action.value, 0), "cuStreamWriteValue32");
  check(calls(action).wait_for_value(stream(action), to, action.value, CU_STREAM_WAIT_VALUE_EQ),
        "cuStreamWaitValue32");
}

void Program::launch_elsewhere(const Action& action) {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  Action there = action;
  there.kind = Action::Kind::Kernel;
  std::thread([this, context, &there] {
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    launch(there);
  }).join();
}

void Program::copy_with_pitch(const Action& action) {
  std::vector<std::uint8_t> own(64, static_cast<std::uint8_t>(visits_));
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = own.data();
  copy.srcPitch = 16;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory_.buffer(action.to);
  copy.dstPitch = 32;
  copy.WidthInBytes = 12;
  copy.Height = 4;
  check(calls(action).copy_rows(&copy, stream(action)), "cuMemcpy2DAsync");
}

void Program::capture(const Action& action) {
  check(cuStreamBeginCapture_v2(stream(action), CU_STREAM_CAPTURE_MODE_RELAXED),
        "cuStreamBeginCapture");
  Action captured = action;
  captured.kind = Action::Kind::Kernel;
  launch(captured);
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(stream(action), &graph), "cuStreamEndCapture");
  check(cuGraphDestroy(graph), "cuGraphDestroy");
}

void Program::load_module(const Action& action) {
  CUmodule& module = loaded_.emplace_back();
  check(cuModuleLoadData(&module, "simcuda image 1\nkernel tally\nglobal counters 256\n"),
        "cuModuleLoadData");
  CUfunction tally = nullptr;
  check(cuModuleGetFunction(&tally, module, "tally"), "tally");
  KernelCall call(tally);
  call.add(action.words).add(memory_.buffer(action.to)).add(std::uint64_t{0});
  check(call.launch(calls(action), Form::Parameters, 1, 32, stream(action)), "a launch");
}

void Program::unload(CUmodule module) {
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  CUdeviceptr counters = 0;
  std::size_t bytes = 0;
  check(cuModuleGetGlobal_v2(&counters, &bytes, module, "counters"), "counters");
  std::vector<std::uint8_t>& values = results_.emplace_back(bytes);
  check(cuMemcpyDtoH_v2(values.data(), counters, bytes), "cuMemcpyDtoH");
  check(cuModuleUnload(module), "cuModuleUnload");
}
