#include <algorithm>
#include <string>

#include "catch.hpp"
#include "gpu/driver/kernel_access.hpp"

using namespace contextune::gpu;

namespace {

std::string ptx(const std::string& parameters, const std::string& body,
                const std::string& before = "") {
  return ".version 8.0\n.target sm_90\n.address_size 64\n" + before + ".visible .entry kernel(" +
         parameters + ")\n{\n" + body + "\nret;\n}\n";
}

const std::string three = ".param .u32 n, .param .u64 x, .param .u64 .ptr .global .align 4 y";
// %rd3 and %rd4 are elements of x and y that belong to the thread.
const std::string header = R"(
  .reg .pred %p<3>;  .reg .b32 %r<9>;  .reg .f32 %f<9>;  .reg .b64 %rd<9>;
  ld.param.u32 %r1, [n];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r2, %tid.x;
  mul.wide.s32 %rd5, %r2, 4;
  add.s64 %rd3, %rd1, %rd5;
  add.s64 %rd4, %rd2, %rd5;
)";

KernelAccess access(const std::string& body, const std::string& before = "") {
  return read_ptx_accesses(ptx(three, header + body, before)).at("kernel");
}

/// "1=r 2=w! total=r", by the numbers of the parameters and the names of variables.
std::string text_of(const KernelAccess& access) {
  std::string text = access.unknown;
  for (std::size_t i = 0; i < access.places.size(); ++i) {
    bool reads = false, writes = false;
    for (const KernelAccess::Use& use : access.uses) {
      if ((use.bases >> i & 1U) == 0) continue;
      reads = reads || use.reads;
      writes = writes || use.writes;
    }
    if (!reads && !writes) continue;
    const KernelAccess::Place& place = access.places[i];
    text += (text.empty() ? "" : " ") +
            (place.variable.empty() ? std::to_string(place.parameter) : place.variable) + "=" +
            (reads ? "r" : "") + (writes ? "w" : "") + (place.steers ? "!" : "");
  }
  return text;
}

std::string uses(const std::string& body, const std::string& before = "") {
  return text_of(access(body, before));
}

}  // namespace

TEST_CASE("What a kernel reads and what it writes stands in its PTX", "[access]") {
  CHECK(uses("ld.global.nc.f32 %f1, [%rd3];\n st.global.f32 [%rd4], %f1;") == "1=r 2=w");
  CHECK(uses("ld.global.f32 %f1, [%rd4+8]; st.global.f32 [%rd4], %f1;") == "2=rw");
  CHECK(uses("st.global.v2.f32 [%rd4], {%f1, %f2};") == "2=w");
  CHECK(uses("ld.v4.u32 {%r3, %r4, %r5, %r6}, [%rd3];") == "1=r");  // no space is named
  CHECK(uses("red.global.add.f32 [%rd4], 0f3F800000;") == "2=rw");
  CHECK(uses("atom.global.add.u32 %r3, [%rd4], 1;") == "2=rw");
  CHECK(uses("") == "");
}

TEST_CASE("What decides about an address, or where the kernel goes, steers", "[access]") {
  const std::string load = "ld.global.u32 %r3, [%rd3];\n";
  CHECK(uses(load + "mul.wide.u32 %rd6, %r3, 4; add.s64 %rd7, %rd2, %rd6;"
                    "st.global.u32 [%rd7], %r2;") == "1=r! 2=w");
  // A value is chosen, or stored or not: where it goes and how long it takes is as before.
  CHECK(uses(load + "setp.ne.s32 %p1, %r3, 0; selp.b32 %r4, 1, 2, %p1;"
                    "@!%p1 st.global.u32 [%rd4], %r4;") == "1=r 2=w");
  // Over a loop: what is made at its end is used at its beginning.
  CHECK(uses("$L2: ld.global.u32 %r4, [%rd7]; add.s64 %rd7, %rd2, %rd6;"
             "ld.global.u32 %r3, [%rd3]; cvt.u64.u32 %rd6, %r3; bra $L2;") == "1=r! 2=r");
}

TEST_CASE("What goes through shared memory comes from where it was read", "[access]") {
  const std::string shared = ".shared .align 4 .b8 tile[1024];\n";
  CHECK(uses(shared + "mov.u32 %r4, tile; ld.global.u32 %r3, [%rd3]; st.shared.u32 [%r4], %r3;"
                      "bar.sync 0; ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd4], %r5;") ==
        "1=r 2=w");
  CHECK(uses(shared + "mov.u32 %r4, tile; cp.async.ca.shared.global [%r4], [%rd3], 4;"
                      "ld.shared.u32 %r5, [%r4]; mul.wide.u32 %rd6, %r5, 4;"
                      "add.s64 %rd7, %rd2, %rd6; st.global.u32 [%rd7], %r5;") == "1=r! 2=w");
  CHECK(uses("mov.u64 %rd6, grown; ld.global.u32 %r3, [%rd3]; st.u32 [%rd6], %r3;",
             ".extern .shared .align 16 .b8 grown[];\n") == "1=r");
}

TEST_CASE("Local memory is the thread's own", "[access]") {
  CHECK(uses(".local .align 4 .b8 depot[16]; mov.u64 %rd6, depot;\n ld.global.u32 %r3, [%rd3];"
             "st.local.u32 [%rd6], %r3;\n ld.local.u32 %r4, [%rd6];\n"
             "st.global.u32 [%rd4], %r4;") == "1=r 2=w");
}

TEST_CASE("Of a parameter that holds several addresses, each has its place", "[access]") {
  const auto found = read_ptx_accesses(ptx(".param .align 8 .b8 args[24]", R"(
    ld.param.v2.u64 {%rd1, %rd2}, [args];
    ld.param.u32 %r1, [args+16];
    ld.global.u32 %r2, [%rd1];
    st.global.u32 [%rd2], %r2;)"))
                         .at("kernel");
  REQUIRE(found.unknown.empty());
  REQUIRE(found.places.size() == 3);
  CHECK(found.places[0].offset_bytes == 0);
  CHECK(found.places[1].offset_bytes == 8);
  CHECK(text_of(found) == "0=r 0=w");
}

TEST_CASE("A variable of the module is memory as what a parameter points to is", "[access]") {
  const std::string total = ".global .align 4 .b8 total[4];\n";
  CHECK(uses("mov.u64 %rd6, total; ld.global.u32 %r3, [%rd6];", total) == "total=r");
  CHECK(uses("ld.global.u32 %r3, [total+4]; st.global.u32 [%rd4], %r3;", total) == "2=w total=r");
  CHECK(uses("atom.global.add.u32 %r3, [total], 1;", total) == "total=rw");
  // An address that lies in one is nobody's that is known.
  CHECK(uses("ld.global.u64 %rd6, [total]; st.global.u32 [%rd6], %r2;", total) ==
        "it finds addresses in memory");
}

TEST_CASE("A constant is read like a number, and what decides which one steers", "[access]") {
  const std::string table = ".const .align 4 .b8 table[64];\n";
  CHECK(uses("ld.const.f32 %f1, [table+8]; st.global.f32 [%rd4], %f1;", table) == "2=w");
  CHECK(uses("ld.global.u32 %r3, [%rd3]; mul.wide.u32 %rd6, %r3, 4; mov.u64 %rd7, table;"
             "add.s64 %rd7, %rd7, %rd6; ld.const.f32 %f1, [%rd7]; st.global.f32 [%rd4], %f1;",
             table) == "1=r! 2=w");
}

TEST_CASE("A kernel of which the code does not show all is unknown", "[access]") {
  CHECK(uses("ld.global.u64 %rd6, [%rd3]; st.global.u32 [%rd6], %r2;") ==
        "it finds addresses in memory");
  CHECK(uses("mov.u64 %rd6, 0; st.global.u32 [%rd6], 1;") == "it uses an address of its own");
  CHECK(uses("{ .param .b64 param0; st.param.b64 [param0], %rd1; call.uni vprintf, (param0); }")
            .starts_with("it"));
  CHECK(uses("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r2}];")
            .starts_with("it has the instruction tex"));
  CHECK(uses("bar.red.popc.u32 %r3, 0, %p1;").starts_with("it has the instruction bar"));
  CHECK(uses("mov.b64 %rd6, x;") == "it takes the address of a parameter");
}

TEST_CASE("Comments, places in the source and scopes are no code", "[access]") {
  CHECK(
      uses("// st.global.u32 [%rd3], %r1;\n.loc 1 20 3, function_name $L__info, inlined_at 1 2 3\n"
           "{ /* begin ; inline */ st.global.u32 [%rd4], %r2;}\n.pragma \"nounroll\";") == "2=w");
}

TEST_CASE("Text that is no PTX, or is cut off at any byte, is read to its end", "[access]") {
  const std::string whole =
      ptx(three, header + "ld.global.f32 %f1, [%rd3]; st.global.f32 [%rd4], %f1;");
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(read_ptx_accesses(whole.substr(0, size)).size() <= 1);
  CHECK(read_ptx_accesses("no PTX").empty());
}

TEST_CASE("A simulated image says of its kernels what PTX would show", "[access]") {
  const auto found = read_simulated_accesses(
      "simcuda image 1\nkernel axpy\naccess axpy 1=r 2=rw! total=w # in place\naccess nothing\n");
  CHECK(text_of(found.at("axpy")) == "1=r 2=rw! total=w");
  CHECK(found.at("nothing").uses.empty());
  CHECK(found.at("nothing").unknown.empty());
  CHECK_FALSE(
      read_simulated_accesses("simcuda image 1\naccess axpy 1x=r\n").at("axpy").unknown.empty());
}

TEST_CASE("What is only left out for what was read ends as before, a loop may not", "[access]") {
  const std::string load = "ld.global.u32 %r3, [%rd3]; setp.ne.s32 %p1, %r3, 0;\n";
  CHECK(uses(load + "@%p1 bra $L1;\nst.global.u32 [%rd4], %r2;\n$L1:") == "1=r 2=w");
  CHECK(uses(load + "@%p1 ret; st.global.u32 [%rd4], %r2;") == "1=r 2=w");
  // Nor may what others of the block wait for.
  CHECK(uses(load + "@%p1 bra $L1;\nbar.sync 0;\n$L1:") == "1=r!");
  CHECK(uses(load + "@%p1 trap;") == "1=r!");
  CHECK(uses("$L1: " + load + "@%p1 bra $L1;") == "1=r!");
  CHECK(uses("$L1: " + load + "@%p1 bra $L2;\nbra $L1;\n$L2:") == "1=r!");
  // What was made in one of two ways depends on which it was.
  const std::string place =
      "mul.wide.u32 %rd6, %r4, 4; add.s64 %rd7, %rd2, %rd6;"
      "st.global.u32 [%rd7], %r2;";
  CHECK(uses(load + "mov.u32 %r4, 0; @%p1 bra $L1;\nmov.u32 %r4, 1;\n$L1: " + place) == "1=r! 2=w");
  CHECK(uses(load + "@%p1 bra $L1;\nmov.u32 %r4, 1; bra $L2;\n$L1: mov.u32 %r4, 2;\n$L2: " +
             place) == "1=r! 2=w");
  CHECK(uses(load + "@%p1 bra $L1;\nmov.u32 %r4, 1; " + place + "\n$L1:") == "1=r 2=w");
  CHECK(uses(load + "mov.u32 %r4, 0; @%p1 bra $L1;\n$L2: " + place +
             "ret;\n$L1: mov.u32 %r4, 1; bra $L2;") == "1=r! 2=w");
  CHECK(uses(".shared .align 4 .b8 tile[4];\n" + load +
             "@%p1 bra $L1;\natom.shared.add.u32 %r5, [tile], 1;\n$L1: ld.shared.u32 %r4, [tile];" +
             place) == "1=r! 2=w");
  CHECK(uses("{ $L1: bra $L1; }\n{ $L1: bra $L1; }") == "two places in its code have one name");
}

// The slow way to read it takes minutes.
TEST_CASE("A kernel that decides thousands of times about what was read is read soon", "[access]") {
  std::string body;
  for (int i = 0; i < 4000; ++i) {
    const std::string number = std::to_string(i);
    body += "ld.global.u32 %r3, [%rd3]; setp.ne.s32 %p" + number + ", %r3, 0;\n@%p" + number +
            " bra $L" + number + ";\nadd.s32 %a" + number + ", %r2, 1; add.s32 %b" + number +
            ", %r2, 2;\nst.global.u32 [%rd4], %r2;\n$L" + number + ":\n";
  }
  CHECK(uses(body) == "1=r 2=w");
}
