#include "space_fixture.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <stdexcept>

namespace contextune::space::test {

Folder::Folder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "contextune_space_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp: " + pattern);
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string Folder::write(const std::string& name, std::string_view text) const {
  const std::string file = path(name);
  std::ofstream(file, std::ios::binary) << text;
  ::chmod(file.c_str(), 0600);
  return file;
}

DeviceFacts device() {
  DeviceFacts facts;
  facts.name = "NVIDIA H200";
  facts.num_sms = 132;
  facts.compute_capability = 90;
  facts.max_threads_per_block = 1024;
  facts.max_threads_per_sm = 2048;
  facts.max_shared_bytes = 232448;
  facts.max_shared_bytes_per_sm = 233472;
  facts.registers_per_sm = 65536;
  facts.l2_bytes = 52428800;
  return facts;
}

TestLaunch& TestLaunch::grid(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  view_.grid = {x, y, z};
  return *this;
}
TestLaunch& TestLaunch::block(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  view_.block = {x, y, z};
  return *this;
}
TestLaunch& TestLaunch::shared(std::uint32_t bytes) {
  view_.shared_bytes = bytes;
  return *this;
}
TestLaunch& TestLaunch::cluster(std::uint32_t x) {
  view_.cluster = {x, 1, 1};
  return *this;
}
TestLaunch& TestLaunch::parameters(std::string_view list) {
  view_.parameters = list;
  return *this;
}
TestLaunch& TestLaunch::bytes(std::string_view raw) {
  values_.emplace_back(raw);
  return *this;
}

const LaunchView& TestLaunch::view() {
  pointers_.clear();
  layouts_.clear();
  std::size_t offset = 0;
  for (const std::string& value : values_) {
    pointers_.push_back(value.data());
    layouts_.push_back({offset, value.size()});
    offset += value.size();
  }
  view_.kernel = "k";
  view_.num_arguments = values_.size();
  view_.arguments = values_.empty() ? nullptr : pointers_.data();
  view_.layouts = values_.empty() ? nullptr : layouts_.data();
  return view_;
}

TestLaunch saxpy_launch(int n) {
  TestLaunch launch;
  launch.grid(1024).block(256).argument(n).argument(2.0F);
  launch.argument(std::uint64_t{0x7f0000001000}).argument(std::uint64_t{0x7f0000002000});
  return launch;
}

std::string load_error(std::string_view text) {
  const Folder folder;
  const std::string path = folder.write("space.lua", text);
  std::string message = message_of([&] { static_cast<void>(SpaceFile::load(path, device())); });
  for (std::size_t at; (at = message.find(path)) != std::string::npos;) {
    message.replace(at, path.size(), "FILE");
  }
  return message;
}

std::shared_ptr<KernelRule> one_rule(std::string_view text) {
  const Folder folder;
  const SpaceFile file = SpaceFile::load(folder.write("space.lua", text), device());
  if (file.rules().size() != 1) throw std::runtime_error("the text declares no single kernel");
  return file.rules()[0];
}

namespace {

template <class Action>
std::string error_of(std::string_view text, const Action& action) {
  const Folder folder;
  const std::string path = folder.write("space.lua", text);
  const SpaceFile file = SpaceFile::load(path, device());
  std::string message = message_of([&] { action(*file.rules()[0]); });
  const std::size_t at = message.find(path);
  if (at != std::string::npos) message.replace(at, path.size(), "FILE");
  return message;
}

}  // namespace

std::string key_error(std::string_view text, TestLaunch launch) {
  return error_of(text, [&](KernelRule& rule) {
    LaunchReads reads;
    static_cast<void>(rule.key(launch.view(), reads));
  });
}

std::string configs_error(std::string_view text, TestLaunch launch) {
  return error_of(text, [&](KernelRule& rule) { static_cast<void>(rule.configs(launch.view())); });
}

std::string apply_error(std::string_view text, TestLaunch launch) {
  return error_of(text, [&](KernelRule& rule) {
    LaunchReads reads;
    for (const Config& config : rule.configs(launch.view())) {
      static_cast<void>(rule.apply(config, launch.view(), reads));
    }
  });
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string to_string(const LaunchReads& reads) {
  std::string text;
  const auto add = [&](bool read, const std::string& name) {
    if (read) text += (text.empty() ? "" : " ") + name;
  };
  add(reads.grid, "grid");
  add(reads.block, "block");
  add(reads.shape, "shape");
  add(reads.everything, "everything");
  for (int i = 0; i < 64; ++i) {
    add((reads.arguments >> i & 1U) != 0, "arg" + std::to_string(i));
  }
  return text;
}

std::string with_apply(std::string_view body) {
  return "kernel \"k\" {\n  params = { \"i32\", \"f32\", \"ptr\", \"ptr\" },\n"
         "  space = { block = {64} },\n  apply = function(config, launch)\n" +
         std::string(body) + "\n  end,\n}\n";
}

}  // namespace contextune::space::test
