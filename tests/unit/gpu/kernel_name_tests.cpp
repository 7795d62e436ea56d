#include "catch.hpp"

#include "gpu/image/kernel_name.hpp"

using namespace contextune::gpu;

TEST_CASE("A kernel is named without return type and parameters", "[kernel_name]") {
  CHECK(demangled_kernel_name("saxpy") == "saxpy");
  CHECK(demangled_kernel_name("_Z5saxpyPfPKffi") == "saxpy");
  CHECK(demangled_kernel_name("_Z4tileILi32ELi8EEvPfi") == "tile<32, 8>");
  CHECK(demangled_kernel_name("_ZN3app4tileIfEEvPT_i") == "app::tile<float>");
  CHECK(demangled_kernel_name("_ZN12_GLOBAL__N_14workEPf") == "(anonymous namespace)::work");
  CHECK(demangled_kernel_name("_ZN12_GLOBAL__N_14workIiEEvPT_") ==
        "(anonymous namespace)::work<int>");
  CHECK(demangled_kernel_name("_Z6reduceIXadL_Z3addffEEEvPf").find("reduce<") == 0);
  CHECK(demangled_kernel_name("_Z5applyIPFffEEvPfT_") == "apply<float (*)(float)>");
  CHECK(demangled_kernel_name("_Z4callPFvvE") == "call");
  CHECK(demangled_kernel_name("_Znonsense") == "_Znonsense");
  CHECK(demangled_kernel_name("") == "");
}

TEST_CASE("Parameter types come from the mangled name", "[kernel_name]") {
  using Types = std::vector<std::string>;
  CHECK(parameter_types("_Z5saxpyPfPKffi") == Types{"float*", "float const*", "float", "int"});
  CHECK(parameter_types("_Z4tileILi32ELi8EEvPfi") == Types{"float*", "int"});
  CHECK(parameter_types("_Z4callPFvifE") == Types{"void (*)(int, float)"});
  CHECK(parameter_types("_Z4pairSt4pairIifE") == Types{"std::pair<int, float>"});
  CHECK(parameter_types("_Z4nonev").empty());
  CHECK(parameter_types("saxpy").empty());
}

TEST_CASE("Blanks do not tell kernel names apart", "[kernel_name]") {
  CHECK(same_kernel_name("tile<32, 8>", "tile<32,8>"));
  CHECK(same_kernel_name(" tile < 32 , 8 > ", "tile<32,8>"));
  CHECK(same_kernel_name("", "  "));
  CHECK_FALSE(same_kernel_name("tile<32, 8>", "tile<32, 80>"));
  CHECK_FALSE(same_kernel_name("tile", "tile2"));
}
