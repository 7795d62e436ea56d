#include "catch.hpp"
#include "space/argument_type.hpp"
#include "space/kernel_name.hpp"
#include "space/nearest_name.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space;
using namespace contextune::space::test;

TEST_CASE("Names are compared without blanks, casts, return types and parameters") {
  CHECK(normalised_name("gemm<64, 64>") == "gemm<64,64>");
  CHECK(normalised_name("void gemm<(int)64, (unsigned int)64u>(float*, int)") == "gemm<64,64>");
  CHECK(normalised_name("gemm<64ul, -1l>") == "gemm<64,-1>");
  CHECK(normalised_name("k<(int)-1>") == "k<-1>");
  CHECK(normalised_name("k<(bool)1, (bool)0>") == "k<true,false>");
  CHECK(normalised_name("k<unsigned  int, float const *>") == "k<unsigned int,float const*>");
  CHECK(normalised_name("k< a<b<1> > >") == "k<a<b<1>>>");
  CHECK(normalised_name("void ns::(anonymous namespace)::k<1>(int (*)(int))") ==
        "ns::(anonymous namespace)::k<1>");
  CHECK(normalised_name("k<(Layout)1>") == "k<(Layout)1>");  // an enumeration is no number
  CHECK(normalised_name("k<float2, x64>") == "k<float2,x64>");
  CHECK(normalised_name("_Z5saxpyifPKfPf") == "_Z5saxpyifPKfPf");
  CHECK(normalised_name("saxpy") == "saxpy");
  CHECK(normalised_name("k<'a', (char)97>").starts_with("k<'a',97"));
  CHECK(normalised_name("") == "");
  CHECK(normalised_name("(") == "(");
  CHECK(normalised_name("()") == "()");
  CHECK(normalised_name("k<1,") == "k<1,");
  CHECK(normalised_name("k<-x, (int)-y>") == "k<-x,(int)-y>");
  CHECK(normalised_name("k<-") == "k<-");
}

TEST_CASE("A rule is found by demangled name or by symbol") {
  const Folder folder;
  const SpaceFile file = SpaceFile::load(folder.write("space.lua", R"(
    kernel "gemm<64, 64>" {}
    kernel "_Z5saxpyifPKfPf" {}
    kernel "ns::softmax" {}
  )"),
                                         device());
  CHECK(file.find("void gemm<(int)64, (int)64>(float const*)") == file.rules()[0]);
  CHECK(file.find("gemm<64,64>") == file.rules()[0]);
  CHECK(file.find("gemm<64, 128>") == nullptr);
  CHECK(file.find("gemm") == nullptr);
  CHECK(file.find("_Z5saxpyifPKfPf") == file.rules()[1]);
  CHECK(file.find("saxpy", "_Z5saxpyifPKfPf") == file.rules()[1]);
  CHECK(file.find("saxpy") == nullptr);
  CHECK(file.find("ns::softmax(float*)") == file.rules()[2]);
  CHECK(file.find("", "") == nullptr);
}

TEST_CASE("Parameter lists give argument types") {
  using enum ArgumentType;
  CHECK(types_of_parameters("").empty());
  CHECK(types_of_parameters("void").empty());
  CHECK(types_of_parameters("int, float, float const*, float*") ==
        std::vector<ArgumentType>{I32, F32, Pointer, Pointer});
  CHECK(
      types_of_parameters("bool, signed char, unsigned short, unsigned long, long long, double") ==
      std::vector<ArgumentType>{U8, I8, U16, U64, I64, F64});
  CHECK(types_of_parameters("int const, unsigned int volatile, const unsigned char") ==
        std::vector<ArgumentType>{I32, U32, U8});
  CHECK(types_of_parameters("std::pair<int, int>, Array<float, 4>*, T&") ==
        std::vector<ArgumentType>{Opaque, Pointer, Pointer});
  CHECK(types_of_parameters("void (*)(int, int), float* __restrict__, float*const, half") ==
        std::vector<ArgumentType>{Pointer, Pointer, Pointer, Opaque});
}

TEST_CASE("The nearest name is suggested, and none if none is near") {
  constexpr std::array<std::string_view, 3> names = {"block", "grid", "cluster"};
  CHECK(nearest_name("blokc", names) == "block");
  CHECK(nearest_name("Grid", names) == "grid");
  CHECK(nearest_name("clusters", names) == "cluster");
  CHECK(nearest_name("tile", names).empty());
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name(std::string(1000, 'x'), names).empty());
  CHECK(suggestion("gird", names) == "; did you mean 'grid'?");
  CHECK(suggestion("tile", names) == "; known are block, grid and cluster");
}
