// The map of allocations, told of calls as the frontend tells of them.
#include <utility>

#include "allocation_calls.hpp"
#include "catch.hpp"

using namespace allocation_calls;

TEST_CASE("Memory is known from when the driver gave it until it is given back", "[allocations]") {
  Calls program;
  program.allocate(0x2000, 0x20);
  program.allocate(0x1000, 0x10);
  CHECK(program.live() == "1000+10 2000+20");
  const auto found = program.map.find(0x201f);
  REQUIRE(found.has_value());
  CHECK(found->begin == 0x2000);
  CHECK(found->kind == AllocationKind::Device);
  CHECK(found->device == 0);
  CHECK(found->context == context_number(0x10));
  CHECK(found->accessible);
  CHECK_FALSE(program.map.find(0x2020).has_value());
  CHECK_FALSE(program.map.find(0xfff).has_value());
  CHECK(program.map.find(0x1000)->serial > found->serial);
  program.free(0x2000);
  CHECK(program.live() == "1000+10");
  CHECK(program.memory.changes().incomplete() == nullptr);
}

TEST_CASE("A call that fails changes nothing", "[allocations]") {
  Calls program;
  CUdeviceptr unset = 0x7000;
  program.call(contextune_fn_cuMemAlloc_v2, CUDA_ERROR_OUT_OF_MEMORY, &unset, std::size_t{8});
  CHECK(program.live().empty());
  program.allocate(0x1000, 0x10);
  const std::uint64_t serial = program.map.find(0x1000)->serial;
  program.free(0x1000, CUDA_ERROR_INVALID_VALUE);
  program.free(0x1008, CUDA_ERROR_INVALID_VALUE);
  CHECK(program.live() == "1000+10");
  CHECK(program.map.find(0x1000)->serial == serial);
}

TEST_CASE("Memory is not to be used from when its release begins", "[allocations]") {
  Calls program;
  program.allocate(0x1000, 0x10);
  CUdeviceptr pointer = 0x1000;
  void* const args[] = {&pointer, nullptr};
  memory_call_begins(program.memory, contextune_fn_cuMemFree_v2, args);
  CHECK(program.live().empty());
  // Another thread is given the same address before this one is back.
  program.allocate(0x1000, 0x20);
  note_memory_call(program.memory, program.driver, contextune_fn_cuMemFree_v2, args, CUDA_SUCCESS);
  CHECK(program.live() == "1000+20");
  CHECK(program.memory.changes().incomplete() == nullptr);
}

TEST_CASE("Memory that others see while a device works is known apart from its own",
          "[allocations]") {
  Calls program;
  std::uint64_t before = 0;
  std::uint64_t before_on_other = 0;
  const auto changed = [&] {
    const std::uint64_t now = program.memory.changes().outside_version(0);
    return std::exchange(before, now) != now;
  };
  const auto changed_for_other = [&] {
    const std::uint64_t now = program.memory.changes().outside_version(1);
    return std::exchange(before_on_other, now) != now;
  };
  program.allocate(0x1000, 0x10);
  CHECK(program.map.outside_of(0).empty());
  (void)changed();
  (void)changed_for_other();
  program.allocate(0x3000, 0x10);
  CHECK_FALSE(changed());
  CHECK(changed_for_other());
  Allocation other;
  other.begin = 0x2000;
  other.bytes = 0x10;
  other.kind = AllocationKind::Host;
  program.map.add(other);
  CHECK(changed());
  REQUIRE(program.map.outside_of(0).size() == 1);
  CHECK(program.map.outside_of(0).front().begin == 0x2000);
  CHECK(program.map.outside_of(1).size() == 3);
  program.map.release(0x2000);
  CHECK(changed());
  program.map.released(0x2000, false);  // the driver has refused
  CHECK(changed());
  CHECK(program.map.outside_of(0).size() == 1);
}

TEST_CASE("The version tells whether anything has changed", "[allocations]") {
  Calls program;
  const std::uint64_t before = program.memory.changes().version();
  program.free(0x1000, CUDA_ERROR_INVALID_VALUE);
  program.create(7);
  CHECK(program.memory.changes().version() == before);
  program.allocate(0x1000, 0x10);
  const std::uint64_t allocated = program.memory.changes().version();
  CHECK(allocated > before);
  program.free(0x1000);
  CHECK(program.memory.changes().version() > allocated);
}

TEST_CASE("What came since an allocation is told in bytes, as far as it is there",
          "[allocations]") {
  Calls program;
  program.allocate(0x1000, 0x100);
  const std::uint64_t serial = program.memory.changes().last_serial();
  CHECK(program.map.device_bytes_since(serial) == 0);
  program.allocate(0x2000, 0x10);
  program.allocate_async(0x3000, 0x20);
  CHECK(program.map.device_bytes_since(serial) == 0x30);
  program.free(0x2000);
  CHECK(program.map.device_bytes_since(serial) == 0x20);
  CHECK(program.map.device_bytes_since(0) == 0x120);
}

TEST_CASE("A pitched allocation is as long as its rows", "[allocations]") {
  Calls program;
  CUdeviceptr pointer = 0x1000;
  std::size_t pitch = 0x200;
  program.call(contextune_fn_cuMemAllocPitch_v2, CUDA_SUCCESS, &pointer, &pitch, std::size_t{9},
               std::size_t{3}, 4U);
  CHECK(program.live() == "1000+600");
}

TEST_CASE("Pool memory lives in no context, wherever its pool is", "[allocations]") {
  Calls program;
  answers.memory_device = 1;
  program.allocate_async(0x1000, 0x10);
  answers.managed = true;
  program.allocate_async(0x2000, 0x10);
  answers.managed = false;
  answers.memory_type = CU_MEMORYTYPE_HOST;
  program.allocate_async(0x3000, 0x10);
  const auto all = program.map.all();
  REQUIRE(all.size() == 3);
  CHECK(all[0].kind == AllocationKind::Pool);
  CHECK(all[0].device == 1);
  CHECK(all[0].context == nullptr);
  CHECK(all[1].kind == AllocationKind::Managed);
  CHECK(all[2].kind == AllocationKind::Host);
  CHECK(all[2].device == -1);
  program.call(contextune_fn_cuMemFreeAsync, CUDA_SUCCESS, CUdeviceptr{0x1000}, CUstream{});
  program.free(0x2000);
  CHECK(program.live() == "3000+10");
}

TEST_CASE("Memory of a graph makes the map incomplete", "[allocations]") {
  Calls program;
  SECTION("captured") {
    answers.capturing = true;
    program.allocate_async(0x1000, 0x10);
  }
  SECTION("added as a node") {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    const auto add = [&] {
      program.call(contextune_fn_cuGraphAddNode_v2, CUDA_SUCCESS, nullptr, nullptr, nullptr,
                   nullptr, std::size_t{0}, &params);
    };
    add();
    CHECK(program.memory.changes().incomplete() == nullptr);
    params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    add();
  }
  CHECK(program.live().empty());
  REQUIRE(program.memory.changes().incomplete() != nullptr);
  CHECK(std::string(program.memory.changes().incomplete()).find("graph") != std::string::npos);
}

TEST_CASE("Host memory is known, allocated or registered", "[allocations]") {
  Calls program;
  void* pinned = handle<void*>(0x1000);
  program.call(contextune_fn_cuMemHostAlloc, CUDA_SUCCESS, &pinned, std::size_t{0x10},
               unsigned{CU_MEMHOSTALLOC_WRITECOMBINED});
  void* registered = handle<void*>(0x2000);
  program.call(contextune_fn_cuMemHostRegister_v2, CUDA_SUCCESS, registered, std::size_t{0x10},
               unsigned{CU_MEMHOSTREGISTER_PORTABLE});
  void* old = handle<void*>(0x3000);
  program.call(contextune_fn_cuMemAllocHost, CUDA_SUCCESS, &old, 0x10U);
  CHECK(program.live() == "1000+10 2000+10 3000+10");
  CHECK(program.map.find(0x1000)->kind == AllocationKind::Host);
  program.call(contextune_fn_cuMemFreeHost, CUDA_SUCCESS, pinned);
  program.call(contextune_fn_cuMemHostUnregister, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, old);
  program.call(contextune_fn_cuMemHostUnregister, CUDA_SUCCESS, registered);
  CHECK(program.live() == "3000+10");
}

TEST_CASE("A variable is live until its module or library goes away", "[allocations]") {
  Calls program;
  const auto module = handle<CUmodule>(0x100);
  const auto library = handle<CUlibrary>(0x200);
  program.ask_variable(module, 0x1000, 0x10);
  const std::uint64_t version = program.memory.changes().version();
  program.ask_variable(module, 0x1000, 0x10);
  CHECK(program.memory.changes().version() == version);
  CHECK(program.map.find(0x1000)->kind == AllocationKind::Global);
  program.free(0x1000, CUDA_ERROR_INVALID_VALUE);
  CHECK(program.live() == "1000+10");

  CUdeviceptr at = 0x2000;
  std::size_t bytes = 0x20;
  program.call(contextune_fn_cuLibraryGetGlobal, CUDA_SUCCESS, &at, &bytes, library, "x");
  auto of_library = handle<CUmodule>(0x300);
  program.call(contextune_fn_cuLibraryGetModule, CUDA_SUCCESS, &of_library, library);
  program.ask_variable(of_library, 0x3000, 0x30);
  CHECK(program.live() == "1000+10 2000+20 3000+30");
  program.call(contextune_fn_cuLibraryUnload, CUDA_SUCCESS, library);
  CHECK(program.live() == "1000+10");
  program.call(contextune_fn_cuModuleUnload, CUDA_SUCCESS, module);
  CHECK(program.live().empty());
}

TEST_CASE("A variable's size is asked for where the program did not", "[allocations]") {
  Calls program;
  CUdeviceptr at = 0x5000;
  std::size_t* nowhere = nullptr;
  program.call(contextune_fn_cuModuleGetGlobal_v2, CUDA_SUCCESS, &at, nowhere,
               handle<CUmodule>(0x100), "x");
  CHECK(program.live() == "5000+18");
  CUdeviceptr* no_address = nullptr;
  std::size_t bytes = 8;
  program.call(contextune_fn_cuModuleGetGlobal_v2, CUDA_SUCCESS, no_address, &bytes,
               handle<CUmodule>(0x100), "y");
  CHECK(program.live() == "5000+18");
  answers.managed = true;
  program.ask_variable(handle<CUmodule>(0x100), 0x6000, 8);
  CHECK(program.map.find(0x6000)->kind == AllocationKind::Managed);
  CHECK(program.memory.changes().incomplete() == nullptr);
}

TEST_CASE("Arrays that kernels can write are known", "[allocations]") {
  Calls program;
  program.create_array(handle<CUarray>(1), 0);
  CHECK_FALSE(program.memory.arrays().has_surfaces());
  program.create_array(handle<CUarray>(2), CUDA_ARRAY3D_SURFACE_LDST);
  CHECK(program.memory.arrays().has_surfaces());
  program.call(contextune_fn_cuArrayDestroy, CUDA_ERROR_INVALID_HANDLE, handle<CUarray>(2));
  CHECK(program.memory.arrays().has_surfaces());
  program.call(contextune_fn_cuArrayDestroy, CUDA_SUCCESS, handle<CUarray>(2));
  CHECK_FALSE(program.memory.arrays().has_surfaces());
}

TEST_CASE("What lived in a context ends with it", "[allocations]") {
  Calls program;
  program.allocate(0x1000, 0x10);
  program.create_array(handle<CUarray>(1), CUDA_ARRAY3D_SURFACE_LDST);
  program.allocate_async(0x2000, 0x10);
  answers.context = context_number(0x20);
  program.allocate(0x3000, 0x10);
  program.call(contextune_fn_cuCtxDestroy_v2, CUDA_SUCCESS, context_number(0x10));
  CHECK(program.live() == "2000+10 3000+10");
  CHECK_FALSE(program.memory.arrays().has_surfaces());
  CHECK(program.memory.changes().incomplete() == nullptr);
}

TEST_CASE("A device that is reset leaves doubt only where memory outlives contexts",
          "[allocations]") {
  Calls program;
  program.allocate(0x1000, 0x10);
  program.memory.forget_device(0, context_number(0x10));
  CHECK(program.live().empty());
  CHECK(program.memory.changes().incomplete() == nullptr);
  program.allocate_async(0x2000, 0x10);
  program.memory.forget_device(1, context_number(0x30));
  CHECK(program.memory.changes().incomplete() == nullptr);
  program.memory.forget_device(0, context_number(0x10));
  CHECK(program.memory.changes().incomplete() != nullptr);
}

TEST_CASE("The map knows when it has missed something", "[allocations]") {
  Calls program;
  SECTION("there is no frontend") {
    CHECK(ProcessMemory(nullptr).changes().incomplete() != nullptr);
    return;
  }
  CHECK(program.memory.changes().incomplete() == nullptr);
  SECTION("the frontend says so") {
    program.missed = 1;
  }
  SECTION("the driver gives out what was in use") {
    program.allocate(0x1000, 0x10);
    program.allocate(0x1008, 0x10);
    CHECK(program.map.find(0x1010)->begin == 0x1008);
  }
  SECTION("memory is shared with a graphics interface") {
    program.call(contextune_fn_cuGraphicsMapResources, CUDA_SUCCESS, 1U, nullptr, CUstream{});
  }
  CHECK(program.memory.changes().incomplete() != nullptr);
}
