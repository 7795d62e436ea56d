// What the driver is given in place of the program's images, and what is remembered of it.
#include <cstring>
#include <fstream>

#include <simcuda/cubin.hpp>

#include "core/submission/submission.hpp"
#include "submit_fixture.hpp"

using namespace contextune::intercept;

namespace {

void* address(auto& value) {
  return &value;
}

/// Loads `code` through one entry point with the arguments of that one.
CUresult load_by(Submitting& program, contextune_fn fn, const void* code, void** owner,
                 CUlibraryOption option = CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE) {
  unsigned none = 0;
  void* nothing = nullptr;
  unsigned options = option == CU_LIBRARY_BINARY_IS_PRESERVED ? 1 : 0;
  CUlibraryOption* option_list = &option;
  void* yes = reinterpret_cast<void*>(std::uintptr_t{1});
  void** values = &yes;
  switch (fn) {
    case contextune_fn_cuModuleLoadDataEx:
      return program.load(fn, {&owner, &code, &none, &nothing, &nothing});
    case contextune_fn_cuLibraryLoadData:
    case contextune_fn_cuLibraryLoadFromFile:
      return program.load(fn, {&owner, &code, &nothing, &nothing, &none, address(option_list),
                               address(values), &options});
    default:
      return program.load(fn, {&owner, &code});
  }
}

bool waits(Submitting& program, const void* owner, const char* kernel = "step") {
  const auto order = program.loads->order_of(owner, kernel);
  return order && order->waits;
}

}  // namespace

TEST_CASE("Every way to load code gives its kernels waits", "[spliced_loads]") {
  Submitting program;
  const ScratchFolder folder;
  std::ofstream(folder.path("kernels.cubin"), std::ios::binary) << Submitting::image();
  const std::string fatbin = simcuda::build_fat_binary(Submitting::image());
  simcuda::FatBinaryWrapper wrapper;
  wrapper.fat_binary = fatbin.data();
  const std::string path = folder.path("kernels.cubin");
  struct Way {
    contextune_fn fn;
    const void* code;
  };
  const std::vector<Way> ways = {
      {contextune_fn_cuModuleLoad, path.c_str()},
      {contextune_fn_cuModuleLoadData, Submitting::image().data()},
      {contextune_fn_cuModuleLoadData, fatbin.data()},
      {contextune_fn_cuModuleLoadDataEx, Submitting::image().data()},
      {contextune_fn_cuModuleLoadFatBinary, fatbin.data()},
      {contextune_fn_cuModuleLoadFatBinary, &wrapper},
      {contextune_fn_cuLibraryLoadData, Submitting::image().data()},
      {contextune_fn_cuLibraryLoadData, &wrapper},
      {contextune_fn_cuLibraryLoadFromFile, path.c_str()},
  };
  const auto before = program.loads->totals();
  for (std::size_t i = 0; i < ways.size(); ++i) {
    INFO(i);
    void* owner = nullptr;
    REQUIRE(load_by(program, ways[i].fn, ways[i].code, &owner) == CUDA_SUCCESS);
    CHECK(program.given != ways[i].code);
    CHECK(waits(program, owner, "step"));
    CHECK(waits(program, owner, "scale"));
    CHECK(program.loads->order_of(owner, "triggering")->triggers);
    CHECK_FALSE(waits(program, owner, "triggering"));
    CHECK_FALSE(waits(program, owner, "waiting"));  // by its own wait
    CHECK_FALSE(program.loads->order_of(owner, "no_such_kernel"));
  }
  const auto totals = program.loads->totals();
  CHECK(totals.images == before.images + ways.size());
  CHECK(totals.kernels == before.kernels + 4 * ways.size());
  CHECK(totals.refused == before.refused + 2 * ways.size());
  CHECK(totals.left == 0);
  CHECK(totals.kept_bytes == 0);
  CHECK(program.refusals.empty());
  CHECK(wrapper.fat_binary == fatbin.data());  // the program's own stays as it was
}

TEST_CASE("A kernel that may be linked with the device's runtime launches, unless its code says no",
          "[spliced_loads]") {
  Submitting program;
  const std::string fatbin = simcuda::build_fat_binary(Submitting::image());
  const void* const others[] = {fatbin.data(), nullptr};
  simcuda::FatBinaryWrapper wrapper;
  wrapper.version = 2;
  wrapper.fat_binary = fatbin.data();
  wrapper.file_name = others;
  void* owner = nullptr;
  const auto loads = [&] {
    REQUIRE(load_by(program, contextune_fn_cuModuleLoadFatBinary, &wrapper, &owner) ==
            CUDA_SUCCESS);
    CHECK(program.given == &wrapper);
    const auto order = program.loads->order_of(owner, "step");
    REQUIRE(order);
    CHECK_FALSE(order->waits);
    CHECK(order->triggers);  // what is linked to it may
    return order->launches;
  };
  CHECK_FALSE(loads());
  program.seconds_for_loads = 0;
  CHECK(loads());
}

TEST_CASE("Kernels that an earlier run chained in vain stay as they are", "[spliced_loads]") {
  Submitting program;
  program.loads->leave(
      {contextune::hash_of_kernel("scale"), contextune::hash_of_kernel("nowhere")});
  void* owner = nullptr;
  REQUIRE(load_by(program, contextune_fn_cuModuleLoadData, Submitting::image().data(), &owner) ==
          CUDA_SUCCESS);
  CHECK(waits(program, owner, "step"));
  CHECK_FALSE(waits(program, owner, "scale"));
}

TEST_CASE("An image that the driver reads later is kept as long as its library",
          "[spliced_loads]") {
  Submitting program;
  void* library = nullptr;
  REQUIRE(load_by(program, contextune_fn_cuLibraryLoadData, Submitting::image().data(), &library,
                  CU_LIBRARY_BINARY_IS_PRESERVED) == CUDA_SUCCESS);
  CHECK(program.loads->totals().kept_bytes == Submitting::image().size());
  CHECK(std::memcmp(program.given, ELFMAG, SELFMAG) == 0);
  program.loads->unloads(library);
  CHECK(program.loads->totals().kept_bytes == 0);
  CHECK(std::memcmp(program.given, ELFMAG, SELFMAG) == 0);  // during the unload it reads it still
  CHECK_FALSE(program.loads->order_of(library, "step"));
}

TEST_CASE("Where the driver refuses the changed image, the program gets its own and its result",
          "[spliced_loads]") {
  Submitting program;
  program.refuses_changed = true;
  void* owner = nullptr;
  REQUIRE(load_by(program, contextune_fn_cuModuleLoadData, Submitting::image().data(), &owner) ==
          CUDA_SUCCESS);
  CHECK(program.given == Submitting::image().data());
  CHECK_FALSE(program.loads->order_of(owner, "step"));
  CHECK(program.loads->totals().left == 1);
  REQUIRE(program.refusals.size() == 1);
  CHECK(program.refusals[0].find("the driver refused it with waits (CUDA_ERROR_INVALID_IMAGE") !=
        std::string::npos);
  // An error of the program's own comes back as it is.
  const std::string unknown = simcuda::build_cubin({{.name = "nobody_has_this"}});
  CHECK(load_by(program, contextune_fn_cuModuleLoadData, unknown.data(), &owner) ==
        CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_CASE("NVIDIA's own libraries and kernels stay as they are, unless all may change",
          "[spliced_loads]") {
  const ScratchFolder folder;
  const std::string path = folder.path("libcublasLt.so.13");
  std::ofstream(path, std::ios::binary) << Submitting::image();
  const std::string kernel = simcuda::build_cubin({{.name = "nvjet_like"}, {.name = "step"}});
  for (const bool all : {false, true}) {
    Submitting program(all ? Splice::All : Splice::Own);
    void* owner = nullptr;
    REQUIRE(load_by(program, contextune_fn_cuModuleLoad, path.c_str(), &owner) == CUDA_SUCCESS);
    CHECK(waits(program, owner) == all);
    CHECK(program.refusals.size() == (all ? 0 : 1));
    REQUIRE(load_by(program, contextune_fn_cuModuleLoadData, kernel.data(), &owner) ==
            CUDA_SUCCESS);
    CHECK(waits(program, owner, "nvjet_like") == all);
    CHECK(waits(program, owner, "step"));
  }
}

TEST_CASE("Images are left alone once there is no time for them", "[spliced_loads]") {
  Submitting program;
  program.seconds_for_loads = 0;
  void* owner = nullptr;
  REQUIRE(load_by(program, contextune_fn_cuModuleLoadData, Submitting::image().data(), &owner) ==
          CUDA_SUCCESS);
  CHECK(program.given == Submitting::image().data());
  CHECK_FALSE(program.loads->order_of(owner, "step"));
  REQUIRE(program.refusals.size() == 1);
  CHECK(program.refusals[0] ==
        "An image was loaded as it is: it has more machine code than is worth reading.");
  program.seconds_for_loads = -1;
  REQUIRE(load_by(program, contextune_fn_cuModuleLoadData, Submitting::image().data(), &owner) ==
          CUDA_SUCCESS);
  CHECK(program.given == Submitting::image().data());
}

TEST_CASE("Where it is known which images are needed, no other one is read", "[spliced_loads]") {
  const ScratchFolder folder;
  const std::string path = folder.path("libcublasLt.so.13");
  std::ofstream(path, std::ios::binary) << Submitting::image();
  const std::string other = simcuda::build_cubin({{.name = "step"}});
  void* owner = nullptr;
  std::uint64_t key = 0;
  {
    Submitting program;
    const auto load = [&](const void* code) {
      REQUIRE(load_by(program, contextune_fn_cuModuleLoadData, code, &owner) == CUDA_SUCCESS);
      return program.loads->image_of(owner);
    };
    key = load(Submitting::image().data()).key;
    CHECK(key != 0);
    CHECK(program.loads->image_of(owner).was_read);
    CHECK(load(other.data()).key != key);
    program.seconds_for_loads = 0;
    CHECK_FALSE(load(Submitting::image().data()).was_read);
    CHECK(program.loads->image_of(owner).key == key);
    // Of what is NVIDIA's nothing is read before it is known to be needed.
    REQUIRE(load_by(program, contextune_fn_cuModuleLoad, path.c_str(), &owner) == CUDA_SUCCESS);
    CHECK_FALSE(program.loads->image_of(owner).was_read);
    CHECK_FALSE(program.loads->order_of(owner, "step"));
    CHECK(program.loads->image_of(nullptr).key == 0);
  }
  Submitting program;
  program.loads->read_only({key});
  REQUIRE(load_by(program, contextune_fn_cuModuleLoadData, Submitting::image().data(), &owner) ==
          CUDA_SUCCESS);
  CHECK(waits(program, owner));
  REQUIRE(load_by(program, contextune_fn_cuModuleLoad, path.c_str(), &owner) == CUDA_SUCCESS);
  CHECK(program.loads->order_of(owner, "step"));
  CHECK_FALSE(waits(program, owner));
  const std::size_t refusals = program.refusals.size();
  REQUIRE(load_by(program, contextune_fn_cuModuleLoadData, other.data(), &owner) == CUDA_SUCCESS);
  CHECK(program.given == other.data());
  CHECK_FALSE(program.loads->order_of(owner, "step"));
  CHECK_FALSE(program.loads->image_of(owner).was_read);
  CHECK(program.refusals.size() == refusals);
  CHECK(program.loads->totals().unneeded == 1);
}

TEST_CASE("A module at the place of one that went with its context is another", "[spliced_loads]") {
  Submitting program;
  const auto owner_at = [](int) { return reinterpret_cast<CUmodule>(0x1000); };
  const auto load_at_once = [&](SplicedLoads::Load load) {
    CUmodule loaded = nullptr;
    CUmodule* to = &loaded;
    const void* code = Submitting::image().data();
    void* arguments[] = {&to, &code};
    REQUIRE(program.loads->load(contextune_fn_cuModuleLoadData, arguments, load) == CUDA_SUCCESS);
    return loaded;
  };
  bool refuses = false;
  const SplicedLoads::Load load = [&](contextune_fn, void* const* args) {
    const void* image = *static_cast<void* const*>(args[1]);
    if (refuses && image != Submitting::image().data()) return CUDA_ERROR_INVALID_IMAGE;
    **static_cast<CUmodule**>(args[0]) = owner_at(0);
    return CUDA_SUCCESS;
  };
  CHECK(waits(program, load_at_once(load)));
  // No call says that it was unloaded.
  SECTION("left alone") {
    program.seconds_for_loads = 0;
  }
  SECTION("refused by the driver") {
    refuses = true;
  }
  SECTION("no more are changed") {
    program.loads->leave_all(true);
  }
  CHECK_FALSE(waits(program, load_at_once(load)));
}

TEST_CASE("The place of a library that went unseen is counted once", "[spliced_loads]") {
  Submitting program;
  for (int i = 0; i < 3; ++i) {
    void* const place = reinterpret_cast<void*>(0x2000);
    void* loaded = nullptr;
    void** to = &loaded;
    const void* code = Submitting::image().data();
    unsigned none = 0;
    void* nothing = nullptr;
    unsigned one = 1;
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    CUlibraryOption* options = &option;
    void* yes = reinterpret_cast<void*>(std::uintptr_t{1});
    void** values = &yes;
    void* arguments[] = {&to, &code, &nothing, &nothing, &none, &options, &values, &one};
    REQUIRE(program.loads->load(contextune_fn_cuLibraryLoadData, arguments,
                                [&](contextune_fn, void* const* args) {
                                  **static_cast<void***>(args[0]) = place;
                                  return CUDA_SUCCESS;
                                }) == CUDA_SUCCESS);
  }
  CHECK(program.loads->totals().kept_bytes == Submitting::image().size());
}
