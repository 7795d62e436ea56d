// A rank that finds the others by what its launcher tells, agrees with them once, and says what it
// found and what came of it. Told nothing: "rank=0 of=1 source=none".
//   --unique-id HEX   what is missing comes from this ncclUniqueId
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "rank/meeting/make_coordinator.hpp"
#include "rank/meeting/rendezvous.hpp"

using contextune::Agreement;
using contextune::Payload;
using contextune::Topic;
using contextune::Verdict;

namespace {

std::vector<std::byte> bytes_of_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string outcome_of(const contextune::rank::Rendezvous& found) {
  const auto coordinator = contextune::rank::make_coordinator(
      found, {{1, [](const Topic&, std::span<const Payload> said, std::string&) {
                 Payload all;
                 for (const Payload& part : said) all.insert(all.end(), part.begin(), part.end());
                 return all;
               }}});
  Topic topic{1, 0, contextune::RankSet::all_of(found.num_ranks)};
  coordinator->say(topic, 1, {static_cast<std::byte>('a' + found.rank % 26)}, 10);
  const Agreement agreement = coordinator->wait(topic, 20);
  if (agreement.verdict != Verdict::Committed) return "failed: " + agreement.why;
  std::string text;
  for (const std::byte byte : agreement.decision) text += static_cast<char>(byte);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  contextune::rank::Rendezvous found = contextune::rank::find_rendezvous();
  if (argc == 3) found = found.with_unique_id(bytes_of_hex(argv[2]));
  std::string line = "rank=" + std::to_string(found.rank) +
                     " local=" + std::to_string(found.local_rank) +
                     " of=" + std::to_string(found.num_ranks) + " source=" + found.source;
  const std::string fault = found.error.empty() ? found.missing : found.error;
  if (!fault.empty()) {
    line += " fault=" + fault;
  } else if (found.num_ranks > 1) {
    line += " address=" + found.address + " agreed=" + outcome_of(found);
  }
  line += "\n";
  // One write: launchers mix what ranks print.
  return write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0
                                                                                             : 1;
}
