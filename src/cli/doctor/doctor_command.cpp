#include "cli/words/commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "cli/doctor/needed_libraries.hpp"
#include "cli/setup/findings.hpp"
#include "cli/setup/program_file.hpp"
#include "cli/setup/space_files.hpp"
#include "cli/words/colour.hpp"
#include "cli/words/text.hpp"

namespace contextune::cli {
namespace {

using Verdict = Finding::Verdict;

void examine_space(const std::string& path, Findings& findings) {
  const SpaceCheck check = check_space_file(path);
  findings.push_back({check.valid ? Verdict::Good : Verdict::Missing, "space file", check.text});
}

// A filter of system calls that comes after the start cannot be asked about: the question is a
// system call.
void examine_sandbox(const std::string& program, Findings& findings) {
  const std::vector<std::string> libraries =
      needed_libraries(find_program(program).value_or(program));
  const bool filters = std::ranges::any_of(
      libraries, [](const std::string& name) { return name.starts_with("libseccomp.so"); });
  if (!filters) return;
  findings.push_back(
      {Verdict::Note, "seccomp",
       program + " uses libseccomp: where its filter kills or traps, let pass the calls that the "
                 "limits (src/intercept/LIMITS.md of contextune's documentation) name. Or let the "
                 "filter refuse them with an error, or set CONTEXTUNE_DISABLE=1"});
}

void examine_program(const std::string& program, Findings& findings) {
  const std::vector<std::string> obstacles = preload_obstacles(program);
  for (const std::string& obstacle : obstacles) {
    findings.push_back({Verdict::Missing, "program", obstacle});
  }
  if (obstacles.empty()) {
    findings.push_back(
        {Verdict::Good, "program",
         find_program(program).value_or(program) + ": a library can be preloaded into it"});
  }
  examine_sandbox(program, findings);
}

std::string mark_of(Verdict verdict) {
  if (verdict == Verdict::Good) return in_tone(Tone::Good, "[ok]");
  return verdict == Verdict::Note ? in_tone(Tone::Warning, "[--]") : in_tone(Tone::Bad, "[no]");
}

}  // namespace

int answer(const DoctorRequest& request) {
  switch_colours(has_colours(request.colour, STDOUT_FILENO));
  Findings findings;
  examine_gpu(findings);
  examine_surroundings(findings);
  if (!request.space.empty()) examine_space(request.space, findings);
  if (!request.command.empty()) examine_program(request.command.front(), findings);
  TextTable table;
  for (const Finding& finding : findings) {
    table.add({mark_of(finding.verdict), finding.subject, finding.text});
  }
  const bool works = std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.verdict == Verdict::Missing; });
  std::cout << table.to_string("")
            << (works ? in_tone(Tone::Good, "Tuning can work here.")
                      : in_tone(Tone::Bad, "Tuning cannot work here: see what is marked [no]."))
            << "\n"
            << std::flush;
  return works ? 0 : 1;
}

}  // namespace contextune::cli
