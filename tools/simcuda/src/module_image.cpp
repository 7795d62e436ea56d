#include "module_image.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "cubin.hpp"
#include "failure.hpp"

namespace simcuda {

namespace {

using KernelNames = std::map<std::string, const simcuda_kernel*, std::less<>>;

KernelNames& registered() {
  static auto* names = new KernelNames;  // outlives whoever unloads at exit
  return *names;
}

/// @param registers in place of what the kernel says; 0: as it says
KernelCode code_of(const simcuda_kernel& kernel, unsigned registers) {
  KernelCode code;
  code.source = &kernel;
  code.name = kernel.name;
  code.registers = registers != 0 ? registers : kernel.registers == 0 ? 32 : kernel.registers;
  const unsigned by_registers = 65536 / (code.registers * 32) * 32;
  code.max_threads_per_block = std::min(1024U, by_registers);
  if (kernel.max_threads_per_block != 0)
    code.max_threads_per_block = std::min(code.max_threads_per_block, kernel.max_threads_per_block);
  std::size_t offset = 0;
  for (std::size_t i = 0; i < kernel.parameter_count; ++i) {
    const simcuda_parameter& parameter = kernel.parameters[i];
    const std::size_t alignment = std::max<std::size_t>(parameter.alignment, 1);
    offset = (offset + alignment - 1) / alignment * alignment;
    code.offsets.push_back(offset);
    offset += parameter.bytes;
  }
  code.parameter_bytes = offset;
  return code;
}

// Kernel files stay loaded: modules, graphs and activity records point into them.
const simcuda_kernel_table& load_kernel_file(const std::string& path) {
  void* const file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(file != nullptr, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
  const auto* const table =
      static_cast<const simcuda_kernel_table*>(dlsym(file, "simcuda_kernels"));
  require(table != nullptr && table->version == SIMCUDA_VERSION,
          CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
  return *table;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Parser {
 public:
  explicit Parser(const std::string& folder) : folder_(folder) {}

  std::shared_ptr<const ModuleImage> parse(std::string_view text) {
    read_lines(text);
    if (!named_kernels_)
      for (const auto& [name, kernel] : of_file_)
        image_->kernels.push_back(code_of(*kernel, registers_));
    return image_;
  }

  // The kernels are those of the machine code, and its text says where they are.
  std::shared_ptr<const ModuleImage> parse(const Cubin& cubin) {
    if (!cubin.text.empty()) read_lines(cubin.text);
    image_->kernels.clear();
    for (const CubinKernel& kernel : cubin.kernels) {
      const simcuda_kernel* const known = find_or_null(std::string(kernel.name));
      require(known != nullptr, CUDA_ERROR_NO_BINARY_FOR_GPU);
      KernelCode code = code_of(*known, registers_);
      code.is_machine_code = true;
      code.waits = kernel.waits;
      code.triggers = kernel.triggers;
      code.detours = kernel.detours;
      image_->kernels.push_back(std::move(code));
    }
    return image_;
  }

 private:
  void read_lines(std::string_view text) {
    std::istringstream lines{std::string(text)};
    std::string line;
    bool begun = false;
    while (std::getline(lines, line)) {
      line.erase(std::min(line.find('#'), line.size()));
      std::istringstream words(line);
      std::string word;
      if (!(words >> word)) continue;
      if (!begun) {
        std::string image;
        int version = 0;
        require(word == "simcuda" && words >> image >> version && image == "image" && version == 1,
                CUDA_ERROR_INVALID_IMAGE);
        begun = true;
        continue;
      }
      read_line(word, words);
    }
    require(begun, CUDA_ERROR_INVALID_IMAGE);
  }

  void read_line(const std::string& word, std::istringstream& words) {
    if (word == "library") {
      std::string file;
      require(static_cast<bool>(words >> file), CUDA_ERROR_INVALID_IMAGE);
      const simcuda_kernel_table& table =
          load_kernel_file(file.front() == '/' ? file : folder_ + "/" + file);
      for (std::size_t i = 0; i < table.count; ++i)
        of_file_[table.kernels[i]->name] = table.kernels[i];
    } else if (word == "kernel") {
      // A name may have blanks: "gemm<64, 64>".
      std::string name;
      std::getline(words >> std::ws, name);
      name.erase(name.find_last_not_of(" \t\r") + 1);
      named_kernels_ = true;
      image_->kernels.push_back(code_of(find(name), registers_));
    } else if (word == "global" || word == "constant") {
      ModuleImage::Global global{};
      global.constant = word == "constant";
      require(static_cast<bool>(words >> global.name >> global.bytes), CUDA_ERROR_INVALID_IMAGE);
      image_->globals.push_back(global);
    } else if (word == "code" || word == "access") {
      // Stands for a kernel's instructions, for whoever looks at them; what runs is a function.
    } else if (word == "registers") {
      require(static_cast<bool>(words >> registers_) && registers_ > 0 && registers_ < 256,
              CUDA_ERROR_INVALID_IMAGE);
    } else {
      throw Failure{CUDA_ERROR_INVALID_IMAGE};
    }
  }

  const simcuda_kernel* find_or_null(const std::string& name) const {
    if (const auto in_file = of_file_.find(name); in_file != of_file_.end()) return in_file->second;
    const auto in_process = registered().find(name);
    return in_process == registered().end() ? nullptr : in_process->second;
  }

  const simcuda_kernel& find(const std::string& name) const {
    const simcuda_kernel* const known = find_or_null(name);
    require(known != nullptr, CUDA_ERROR_NOT_FOUND);
    return *known;
  }

  const std::string& folder_;
  std::shared_ptr<ModuleImage> image_ = std::make_shared<ModuleImage>();
  KernelNames of_file_;
  bool named_kernels_ = false;
  unsigned registers_ = 0;
};

}  // namespace

std::shared_ptr<const ModuleImage> ModuleImage::parse(std::string_view text,
                                                      const std::string& folder) {
  // Graphs and activity records point into images of modules that were unloaded.
  static auto* const kept = new std::vector<std::shared_ptr<const ModuleImage>>;
  Parser parser(folder);
  if (is_cubin(text))
    kept->push_back(parser.parse(read_cubin(text)));
  else
    kept->push_back(parser.parse(text));
  return kept->back();
}

std::shared_ptr<const ModuleImage> ModuleImage::read(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  const std::string simulated = path + ".sim";
  const bool beside = std::ifstream(simulated).good();
  return parse(contents(beside ? simulated : path), folder);
}

bool register_kernels(const simcuda_kernel_table& table) {
  if (table.version != SIMCUDA_VERSION) return false;
  for (std::size_t i = 0; i < table.count; ++i)
    registered()[table.kernels[i]->name] = table.kernels[i];
  return true;
}

}  // namespace simcuda
