#include "intercept/site/declared_files.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "core/trials/stored_winner.hpp"

using namespace contextune;
using namespace contextune::intercept;

namespace {

class Scratch {
 public:
  Scratch() { REQUIRE(mkdtemp(folder_.data()) != nullptr); }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_ = "/tmp/contextune-declared-XXXXXX";
};

LaunchChange built_from(const std::string& source, std::vector<std::string> options = {}) {
  LaunchChange change;
  change.source = source;
  change.build_options = std::move(options);
  return change;
}

/// As a new process finds it.
std::string declaration(const std::vector<LaunchChange>& changes) {
  return DeclaredFiles().declaration_of("rule", changes);
}

}  // namespace

TEST_CASE("What a source includes decides what it means, wherever it lies", "[declaration]") {
  const Scratch files;
  const std::string source = files.write("kernels/k.cu",
                                         "#include \"tile.h\"\n"
                                         "  #  include <shape.h>  // found as NVRTC does\n"
                                         "#include <cuda_fp16.h>\n"
                                         "#include MACRO\n#include \"\n#include\n");
  files.write("kernels/tile.h", "#include \"inner/deep.h\"\n#include \"tile.h\"\n");
  files.write("kernels/inner/deep.h", "#include \"beside.h\"\n");
  files.write("kernels/inner/beside.h", "#define A 1\n");
  files.write("include/shape.h", "#define B 1\n");
  const auto all = [&] {
    return declaration({built_from(source, {"-DX=1", "-I", files.path("include")}),
                        built_from(source, {"-DX=2", "-I", files.path("include")})});
  };
  const std::string before = all();
  CHECK(std::count(before.begin(), before.end(), ' ') == 5);
  CHECK(all() == before);
  const std::string edited = GENERATE("kernels/k.cu", "kernels/tile.h", "kernels/inner/deep.h",
                                      "kernels/inner/beside.h", "include/shape.h");
  INFO(edited);
  std::ofstream(files.path(edited), std::ios::app) << "// edited\n";
  CHECK_FALSE(is_same_declaration(before, all()));
}

TEST_CASE("Headers are looked for where the options say", "[declaration]") {
  const Scratch files;
  const std::string source = files.write("k.cu", "#include <shape.h>\n");
  files.write("include/shape.h", "#define B 1\n");
  const std::string folder = files.path("include");
  const std::string none = declaration({built_from(source)});
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"-I" + folder},
                                             {"-I", folder},
                                             {"--include-path=" + folder},
                                             {"-I=" + folder},
                                             {"--include-path", folder}})
    CHECK(declaration({built_from(source, options)}).size() > none.size());
  CHECK(declaration({built_from(source, {"-DI=1", "-I"})}) == none);
  // The source's own folder comes first.
  files.write("shape.h", "#define B 2\n");
  CHECK(declaration({built_from(source)}).size() > none.size());
}

TEST_CASE("Files are read once, as they are built once", "[declaration]") {
  const Scratch files;
  LaunchChange change;
  change.module = files.write("k.cubin", "first");
  DeclaredFiles declared;
  const std::string before = declared.declaration_of("rule", std::vector{change});
  files.write("k.cubin", "second");
  CHECK(declared.declaration_of("rule", std::vector{change}) == before);
  CHECK_FALSE(is_same_declaration(before, declaration({change})));
}

TEST_CASE("What is no file, and a source without end, hold nobody up", "[declaration]") {
  const Scratch files;
  const std::string pipe = files.path("pipe.h");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::string text =
      "#include \"pipe.h\"\n#include \".\"\n#include \"/dev/zero\"\n#include \"gone.h\"\n";
  for (int i = 0; i < 1000; ++i) {
    text += "#include \"" + std::to_string(i) + ".h\"\n";
    files.write(std::to_string(i) + ".h", "#include \"k.cu\"\n" + std::to_string(i));
  }
  const std::string words = declaration({built_from(files.write("k.cu", text))});
  CHECK(std::count(words.begin(), words.end(), ' ') == 256);
  CHECK(declaration({built_from(files.path("gone.cu"))}) == "rule");
}
