#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "store/entry_json.hpp"
#include "store/entry_size.hpp"
#include "store/file_store.hpp"
#include "store/identity.hpp"
#include "store/merge.hpp"
#include "tests/file_text.hpp"
#include "tests/scratch_folder.hpp"

namespace contextune::store::test {

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinite = std::numeric_limits<double>::infinity();

inline StoreIdentity identity(const std::string& name = "decode") {
  return {StoredKind::Region,
          name,
          {{{"gpu", "NVIDIA H200"}, {"num_sms", "132"}}, {{"driver", "13.0"}, {"nccl", "2.28"}}}};
}

inline Config block(std::int64_t threads) {
  return {{"block", threads}, {"per_sm", std::int64_t{4}}};
}

/// With every type that a key and a config may have.
inline StoredSite site(const std::string& name = "saxpy", std::int64_t winner = 256) {
  StoredSite made;
  made.name = name;
  made.key = {{"n", std::int64_t{1} << 40}, {"type", std::string("f32")}};
  made.trials = {
      {block(128), TrialStatus::Measured, 5, 3e-6, 2.9e-6, 3.1e-6},
      {block(256), TrialStatus::Measured, 5, 2e-6, 1.9e-6, 2.2e-6},
      {block(2048), TrialStatus::LaunchFailed, 0, not_measured, not_measured, not_measured},
      {{{"share", 0.1}, {"fast", true}, {"algorithm", std::string("Ring")}},
       TrialStatus::CutOff,
       1,
       9e-6,
       9e-6,
       9e-6}};
  made.winner = block(winner);
  made.code = "0123456789abcdef";
  made.image = "build 76543210fedcba98";
  made.terms = {"", 30, 3, true, 512 << 20, true};
  made.declaration = "00112233445566aa 00112233445566bb";
  made.progress = "1 \"half\" of it";
  made.seconds = 2e-6;
  made.default_seconds = 3e-6;
  return made;
}

inline StoredConfirm confirm() {
  return {ConfirmVerdict::Kept, 1e-3, 9e-4, 0.1, 0.08, 8};
}

/// An entry with all that there may be.
inline Entry full_entry() {
  Entry entry;
  entry.name = "decode";
  entry.hardware = normalised(identity().environment.hardware);
  for (int i = 0; i < 3; ++i) {
    add_tuning(entry, {{"driver", "13." + std::to_string(i)}}, {site(), site("gemm", 64 << i)},
               confirm(), "2026-11-2" + std::to_string(i) + "T20:33:53Z");
  }
  return entry;
}

/// A store, and what it said.
struct TestStore {
  explicit TestStore(const std::string& folder, double wait_seconds = 5)
      : store(folder,
              [this](FallbackReason reason, const std::string& text) {
                said.emplace_back(reason, text);
              },
              {wait_seconds, [this] { return now; }}) {}

  std::int64_t now = 1795000000;
  std::vector<std::pair<FallbackReason, std::string>> said;
  FileStore store;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::string file_of(const std::string& folder, const StoreIdentity& of = identity()) {
  const EntryPlace place = place_of(of.kind, of.name, of.environment.hardware);
  return folder + '/' + place.folder + '/' + place.file;
}

/// Names below a folder, sorted, folders with what is in them.
inline std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder))
    if (!item.is_directory()) files.push_back(item.path().lexically_relative(folder).string());
  std::sort(files.begin(), files.end());
  return files;
}

inline void write_file(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

/// What `check` answers in a process of its own, which may give up its rights: 0 to 99; 100 if it
/// threw; -1 if the process was killed.
inline int in_process(const std::function<int()>& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    int answer = 100;
    try {
      answer = check();
    } catch (...) {
      answer = 100;
    }
    ::_exit(answer);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace contextune::store::test
