#include "gpu/memory/block_kernels.hpp"

#include <array>

#include <contextune/error.hpp>

#include "gpu/driver/text_excerpt.hpp"

namespace contextune::gpu {
namespace {

// PTX as text: contextune is built without nvcc, and the driver compiles it for any device from
// sm_70 on. In both kernels thread 0 fetches from host memory what its thread block is to do; then
// all threads walk through up to 64 KiB, 16 bytes each at a time where the address allows it. The
// shapes are those that came nearest to the memory's bandwidth on an H200. Data that they read is
// the first to leave the cache again (.cs): a copy does not push out what the program left there.
#define CONTEXTUNE_PTX_HEADER ".version 6.3\n.target sm_70\n.address_size 64\n"

// The constants and steps are those of block_hash.cpp. mix(word + key) is added to `sum`:
#define CONTEXTUNE_PTX_ADD_WORD(word)                \
  "  add.u64 mixed, " word                           \
  ", key;\n"                                         \
  "  shr.u64 high, mixed, 32;\n"                     \
  "  xor.b64 mixed, mixed, high;\n"                  \
  "  mul.lo.u64 mixed, mixed, 0xff51afd7ed558ccd;\n" \
  "  shr.u64 high, mixed, 32;\n"                     \
  "  xor.b64 mixed, mixed, high;\n"                  \
  "  mul.lo.u64 mixed, mixed, 0xc4ceb9fe1a85ec53;\n" \
  "  shr.u64 high, mixed, 32;\n"                     \
  "  xor.b64 mixed, mixed, high;\n"                  \
  "  add.u64 sum, sum, mixed;\n"
// Two words, and on to the key of this thread's next two: 1 and 511 steps.
#define CONTEXTUNE_PTX_ADD_PAIR(first, second)                         \
  CONTEXTUNE_PTX_ADD_WORD(first)                                       \
  "  add.u64 key, key, 0x9e3779b97f4a7c15;\n" CONTEXTUNE_PTX_ADD_WORD( \
      second) "  add.u64 key, key, 0xd0bbf94515adadeb;\n"

constexpr const char* ptx = CONTEXTUNE_PTX_HEADER R"ptx(
.visible .entry contextune_hash_blocks(.param .u64 work, .param .u64 hashes)
.maxntid 256, 1, 1
{
  .reg .pred yes;
  .reg .u32 thread, block, size, pairs, pair, last, number, left, low, high32, distance;
  .reg .u64 entry, address, bytes, at, key, sum, mixed, high, word, other, place;
  .reg .u64 a0, b0, a1, b1, a2, b2, a3, b3;
  .shared .align 16 .b64 told[2];
  .shared .align 8 .b64 sums[8];

  mov.u32 thread, %tid.x;
  mov.u32 block, %ctaid.x;
  setp.ne.u32 yes, thread, 0;
  @yes bra TOLD;
  ld.param.u64 entry, [work];
  mad.wide.u32 entry, block, 16, entry;
  ld.global.v2.u64 {address, bytes}, [entry];
  st.shared.v2.u64 [told], {address, bytes};
TOLD:
  bar.sync 0;
  ld.shared.v2.u64 {address, bytes}, [told];
  cvt.u32.u64 size, bytes;

  // Pairs of words, if they are aligned.
  shr.u32 pairs, size, 4;
  and.b64 at, address, 15;
  setp.ne.u64 yes, at, 0;
  selp.u32 pairs, 0, pairs, yes;
  mov.u64 sum, 0;
  mov.u32 pair, thread;
  mul.wide.u32 key, thread, 2;
  add.u64 key, key, 1;
  mul.lo.u64 key, key, 0x9e3779b97f4a7c15;
FOUR_PAIRS:
  add.u32 last, pair, 768;
  setp.ge.u32 yes, last, pairs;
  @yes bra ONE_PAIR;
  mad.wide.u32 at, pair, 16, address;
  ld.global.cs.v2.u64 {a0, b0}, [at];
  ld.global.cs.v2.u64 {a1, b1}, [at + 4096];
  ld.global.cs.v2.u64 {a2, b2}, [at + 8192];
  ld.global.cs.v2.u64 {a3, b3}, [at + 12288];
)ptx" CONTEXTUNE_PTX_ADD_PAIR("a0", "b0") CONTEXTUNE_PTX_ADD_PAIR("a1", "b1")
    CONTEXTUNE_PTX_ADD_PAIR("a2", "b2") CONTEXTUNE_PTX_ADD_PAIR("a3", "b3") R"ptx(
  add.u32 pair, pair, 1024;
  bra FOUR_PAIRS;
ONE_PAIR:
  setp.ge.u32 yes, pair, pairs;
  @yes bra WORDS;
  mad.wide.u32 at, pair, 16, address;
  ld.global.cs.v2.u64 {a0, b0}, [at];
)ptx" CONTEXTUNE_PTX_ADD_PAIR("a0", "b0") R"ptx(
  add.u32 pair, pair, 256;
  bra ONE_PAIR;

  // What is left, put together from bytes.
WORDS:
  shl.b32 number, pairs, 1;
  add.u32 number, number, thread;
  cvt.u64.u32 key, number;
  add.u64 key, key, 1;
  mul.lo.u64 key, key, 0x9e3779b97f4a7c15;
ONE_WORD:
  shl.b32 left, number, 3;
  setp.ge.u32 yes, left, size;
  @yes bra SUM_UP;
  cvt.u64.u32 at, left;
  add.u64 at, at, address;
  sub.u32 left, size, left;
  min.u32 left, left, 8;
  cvt.u64.u32 place, left;
  add.u64 place, place, at;
  mov.u64 word, 0;
ONE_BYTE:
  sub.u64 place, place, 1;
  ld.global.u8 other, [place];
  shl.b64 word, word, 8;
  or.b64 word, word, other;
  setp.gt.u64 yes, place, at;
  @yes bra ONE_BYTE;
)ptx" CONTEXTUNE_PTX_ADD_WORD("word") R"ptx(
  add.u32 number, number, 256;
  add.u64 key, key, 0x3779b97f4a7c1500;
  bra ONE_WORD;

  // Within each warp, then over the eight.
SUM_UP:
  bar.warp.sync 0xffffffff;
  mov.u32 distance, 16;
HALVE:
  mov.b64 {low, high32}, sum;
  shfl.sync.down.b32 low, low, distance, 31, 0xffffffff;
  shfl.sync.down.b32 high32, high32, distance, 31, 0xffffffff;
  mov.b64 other, {low, high32};
  add.u64 sum, sum, other;
  shr.u32 distance, distance, 1;
  setp.ne.u32 yes, distance, 0;
  @yes bra HALVE;
  and.b32 left, thread, 31;
  setp.ne.u32 yes, left, 0;
  @yes bra SUMS;
  mov.u64 place, sums;
  shr.u32 left, thread, 5;
  mad.wide.u32 place, left, 8, place;
  st.shared.u64 [place], sum;
SUMS:
  bar.sync 0;
  setp.ne.u32 yes, thread, 0;
  @yes bra END;
  ld.shared.u64 sum, [sums];
  mov.u32 number, 1;
  mov.u64 place, sums;
NEXT_SUM:
  add.u64 place, place, 8;
  ld.shared.u64 other, [place];
  add.u64 sum, sum, other;
  add.u32 number, number, 1;
  setp.lt.u32 yes, number, 8;
  @yes bra NEXT_SUM;
  mov.u64 word, sum;
  mul.lo.u64 key, bytes, 0x9e3779b97f4a7c15;
  mov.u64 sum, 0;
)ptx" CONTEXTUNE_PTX_ADD_WORD("word") R"ptx(
  ld.param.u64 entry, [hashes];
  mad.wide.u32 entry, block, 8, entry;
  st.global.u64 [entry], sum;
END:
  ret;
}

.visible .entry contextune_copy_blocks(.param .u64 work)
.maxntid 1024, 1, 1
{
  .reg .pred yes;
  .reg .u32 thread, block, size, pairs, pair, last, byte;
  .reg .u64 entry, to, from, bytes, target, source, one;
  .reg .u64 a0, b0, a1, b1;
  .shared .align 8 .b64 told[3];

  mov.u32 thread, %tid.x;
  mov.u32 block, %ctaid.x;
  setp.ne.u32 yes, thread, 0;
  @yes bra TOLD;
  ld.param.u64 entry, [work];
  mad.wide.u32 entry, block, 24, entry;
  ld.global.u64 to, [entry];
  ld.global.u64 from, [entry + 8];
  ld.global.u64 bytes, [entry + 16];
  st.shared.u64 [told], to;
  st.shared.u64 [told + 8], from;
  st.shared.u64 [told + 16], bytes;
TOLD:
  bar.sync 0;
  ld.shared.u64 to, [told];
  ld.shared.u64 from, [told + 8];
  ld.shared.u64 bytes, [told + 16];
  cvt.u32.u64 size, bytes;

  // 16 bytes at a time, if they are aligned on both sides.
  shr.u32 pairs, size, 4;
  or.b64 one, to, from;
  and.b64 one, one, 15;
  setp.ne.u64 yes, one, 0;
  selp.u32 pairs, 0, pairs, yes;
  mov.u32 pair, thread;
TWO_PAIRS:
  add.u32 last, pair, 1024;
  setp.ge.u32 yes, last, pairs;
  @yes bra ONE_PAIR;
  mad.wide.u32 source, pair, 16, from;
  mad.wide.u32 target, pair, 16, to;
  ld.global.cs.v2.u64 {a0, b0}, [source];
  ld.global.cs.v2.u64 {a1, b1}, [source + 16384];
  st.global.v2.u64 [target], {a0, b0};
  st.global.v2.u64 [target + 16384], {a1, b1};
  add.u32 pair, pair, 2048;
  bra TWO_PAIRS;
ONE_PAIR:
  setp.ge.u32 yes, pair, pairs;
  @yes bra BYTES;
  mad.wide.u32 source, pair, 16, from;
  mad.wide.u32 target, pair, 16, to;
  ld.global.cs.v2.u64 {a0, b0}, [source];
  st.global.v2.u64 [target], {a0, b0};
  add.u32 pair, pair, 1024;
  bra ONE_PAIR;

BYTES:
  shl.b32 byte, pairs, 4;
  add.u32 byte, byte, thread;
ONE_BYTE:
  setp.ge.u32 yes, byte, size;
  @yes bra END;
  cvt.u64.u32 one, byte;
  add.u64 source, from, one;
  add.u64 target, to, one;
  ld.global.u8 one, [source];
  st.global.u8 [target], one;
  add.u32 byte, byte, 1024;
  bra ONE_BYTE;
END:
  ret;
}
)ptx";

/// A program of the simulated driver may bring a kernel that stands for the second.
constexpr const char* simulated_image = "simcuda image 1\nkernel contextune_copy_blocks\n";

}  // namespace

BlockKernels::~BlockKernels() {
  if (library_ != nullptr && driver_.cuLibraryUnload != nullptr) {
    (void)driver_.cuLibraryUnload(library_);
  }
}

CUfunction BlockKernels::hash() {
  const std::lock_guard lock(mutex_);
  load();
  if (hash_ == nullptr) throw Error("the simulated driver has no kernel that hashes memory");
  return hash_;
}

CUfunction BlockKernels::copy() {
  const std::lock_guard lock(mutex_);
  load();
  return copy_;
}

void BlockKernels::load() {
  if (library_ != nullptr) return;
  if (driver_.cuLibraryLoadData == nullptr || driver_.cuLibraryGetKernel == nullptr) {
    throw Error("this driver cannot run the kernels that hash and copy memory");
  }
  const RelaxedCapture relaxed(driver_);
  std::array<char, 4096> log{};
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size() - 1)};
  CUlibrary library = nullptr;
  const CUresult loaded =
      driver_.cuLibraryLoadData(&library, driver_.simulated ? simulated_image : ptx, options.data(),
                                values.data(), 2, nullptr, nullptr, 0);
  if (loaded != CUDA_SUCCESS) {
    throw Error("loading the kernels that hash and copy memory: " + describe(driver_, loaded) +
                text_excerpt(log.data()));
  }
  library_ = library;
  const auto find = [&](const char* name) {
    CUkernel kernel = nullptr;
    check(driver_, driver_.cuLibraryGetKernel(&kernel, library_, name), name);
    return reinterpret_cast<CUfunction>(kernel);  // launched as it is in every context
  };
  if (!driver_.simulated) hash_ = find("contextune_hash_blocks");
  copy_ = find("contextune_copy_blocks");
}

}  // namespace contextune::gpu
