#include "intercept/submit/stored_submission.hpp"

#include <sys/auxv.h>

#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "core/hexadecimal.hpp"
#include "core/stable_hash.hpp"
#include "core/submission_stored.hpp"
#include "gpu/program_file.hpp"
#include "intercept/program_name.hpp"

namespace contextune::intercept {
namespace {

constexpr double longest_save_seconds = 1;

std::string hash_of_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  StableHash hash;
  // Behind the name under which the program was started.
  hash.add(all.substr(std::min(all.find('\0'), all.size())));
  return hexadecimal(hash.value());
}

}  // namespace

StoredSubmission::StoredSubmission(ProcessStore& store) : store_(store) {
  const std::string path = program_name();
  key_.add("program", path.substr(path.rfind('/') + 1));
  key_.add("arguments", hash_of_arguments());
  const auto* const in_program = reinterpret_cast<const void*>(getauxval(AT_PHDR));
  if (const auto file = gpu::program_file_of(in_program, 1)) build_ = file->build;
}

std::optional<SubmissionState> StoredSubmission::load(bool& same_software) const {
  if (build_.empty()) return std::nullopt;
  const StoredSite* const stored = store_.find(store_.entry_of(region), site, key_);
  if (stored == nullptr || stored->image != build_) return std::nullopt;
  same_software = stored->same_software;
  return submission_of(*stored);
}

store::TrialJournal::Trial StoredSubmission::trial_of(const std::string& ways) const {
  Key key = key_;
  key.add("build", build_);  // another one may do better
  auto trial = store::TrialJournal::trial_of(region, site, key.to_string(), {});
  trial.text += ways;
  return trial;
}

bool StoredSubmission::was_fatal() const {
  const store::TriedConfig tried = trial_of({}).config;
  const auto suspicion = store_.journal().suspicion(tried);
  if (suspicion == store::TrialJournal::Suspicion::Suspect) store_.journal().blame(tried);
  return suspicion != store::TrialJournal::Suspicion::None;
}

void StoredSubmission::set_in_flight(const std::vector<Submission>& submissions) const {
  std::string ways;
  for (const Submission& one : submissions) ways += (ways.empty() ? "" : " or ") + text_of(one);
  std::vector<store::TrialJournal::Trial> trials;
  if (!ways.empty()) trials.push_back(trial_of(ways));
  store_.journal().set(this, std::move(trials));
}

void StoredSubmission::save(const SubmissionState& state) const {
  if (build_.empty()) return;
  ProcessStore::Saved saved;
  saved.site = stored_submission(state, site, key_, {});
  saved.code.build = build_;
  std::vector<ProcessStore::Saved> sites;
  sites.push_back(std::move(saved));
  store_.save(store_.entry_of(region).identity, std::move(sites), std::nullopt);
}

void StoredSubmission::wait() const {
  store_.wait(longest_save_seconds);
}

}  // namespace contextune::intercept
