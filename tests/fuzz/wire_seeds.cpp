// Where the search of the wire's fuzz target begins: ranks that agree, in each way that there is.
#include <array>

#include "core/agreement/batch_message.hpp"
#include "core/agreement/batch_planner.hpp"
#include "core/agreement/domain_planner.hpp"
#include "core/agreement/replay_vote.hpp"
#include "fuzz_target.hpp"
#include "rank/meeting/gathered_rendezvous.hpp"
#include "wire_peer.hpp"
#include "wire_script.hpp"

namespace contextune::fuzz {
namespace {

using rank::MessageType;
using rank::Purpose;

constexpr std::uint8_t batch_kind = 1;
constexpr std::uint8_t domain_kind = 2;
constexpr std::uint8_t lockstep_kind = 3;
constexpr std::uint8_t all_three = 0b111;
constexpr std::array<std::uint8_t, 2> both{0, 1};  // connections

Payload vote() {
  ReplayVote made;
  made.can = true;
  made.communicators = {{7, 2, 99}};
  return encode(made);
}

ScriptWriter hub_of_three() {
  ScriptWriter script(Tested::Hub, 3);
  script.call(1, Purpose::Join).call(2, Purpose::Join);
  for (const std::uint8_t one : both)
    script.message(one, MessageType::Listening).bytes(std::as_bytes(std::span("unix:nobody")));
  return script;
}

void own_says(ScriptWriter& script, std::uint8_t question, std::uint8_t kind, std::uint8_t seconds,
              const Payload& part) {
  script.act(Act::Say).topic(1, question, all_three).byte(kind).byte(seconds).bytes(part);
}

void say(ScriptWriter& script, std::uint8_t connection, std::uint8_t question, std::uint8_t kind,
         const Payload& part) {
  script.message(connection, MessageType::Say).topic(1, question, all_three);
  script.byte(kind).byte(long_time).bytes(part);
}

void agree(ScriptWriter& script, std::uint8_t question, std::uint8_t kind, const Payload& part) {
  own_says(script, question, kind, long_time, part);
  for (const std::uint8_t one : both) say(script, one, question, kind, part);
  for (const std::uint8_t one : both)
    script.message(one, MessageType::Vote).topic(1, question, all_three);
  script.act(Act::Poll).topic(1, question, all_three);
  for (const std::uint8_t one : both)
    script.message(one, MessageType::Acknowledge).topic(1, question, all_three);
}

BatchReport first_report() {
  BatchReport report;
  report.inputs_hash = 3;
  report.options.n_warmup = 0;
  report.options.n_repeat = 1;
  report.new_sites.resize(2);
  report.new_sites[0].site = {"gemm", "n=1", 5, 3, Objective::Own, {}, {}, {}};
  report.new_sites[1].site = {"all_reduce", "n=2", 6, 2, Objective::Region, 1, 2, 1U, true};
  return report;
}

/// What a rank says when it has run that batch.
BatchReport report_of(const Batch& batch, std::uint64_t hash) {
  BatchReport report;
  report.inputs_hash = 3;
  report.options = first_report().options;
  report.batch = batch.number;
  report.batch_hash = hash;
  for (const Batch::Pass& pass : batch.passes) {
    PassReport made;
    made.region_seconds = 1e-3;
    for (std::uint32_t site = 0; site < pass.configs.size(); ++site)
      made.sites.push_back({site, pass.configs[site], 1, 1e-4, SiteResult::Status::Measured});
    report.passes.push_back(made);
  }
  return report;
}

std::string several_batches() {
  ScriptWriter script = hub_of_three();
  GroupPlanners planners;
  Payload part = encode(first_report());
  for (std::uint8_t question = 0; question < 4; ++question) {
    agree(script, question, batch_kind, part);
    const std::array<Payload, 3> said{part, part, part};
    std::string why;
    Batch batch;
    const Payload decision = planners.decide({1, question, {0, 1, 2}}, said, why);
    if (!decode(decision, batch)) broken("the seed's reports give batches");
    part = encode(report_of(batch, hash_of(decision)));
  }
  return script.text();
}

std::string late_rank() {
  ScriptWriter script = hub_of_three();
  own_says(script, 0, lockstep_kind, no_time, vote());
  say(script, 0, 0, lockstep_kind, vote());
  script.act(Act::Wait);
  script.message(1, MessageType::Occupied).topic(1, 0, all_three).byte(long_time).bytes({});
  script.act(Act::Wait);
  script.message(1, MessageType::Withdraw).topic(1, 0, all_three).bytes({});
  script.act(Act::Poll).topic(1, 0, all_three);
  return script.text();
}

std::string domain() {
  DomainReport report;
  report.num_ranks = 3;
  report.used = {{8, 2, 1}, {9, 3, 3}};
  ScriptWriter script = hub_of_three();
  script.message(0, MessageType::Say).topic(4, 0, 0b010);
  script.byte(domain_kind).byte(long_time).bytes(encode(report));
  script.message(0, MessageType::Vote).topic(4, 0, 0b010);
  return script.text();
}

std::string lost_rank() {
  ScriptWriter script = hub_of_three();
  own_says(script, 0, lockstep_kind, long_time, vote());
  for (const std::uint8_t one : both) say(script, one, 0, lockstep_kind, vote());
  script.message(0, MessageType::Vote).topic(1, 0, all_three);
  script.act(Act::HangUp).byte(0);
  script.call(1, Purpose::Ask);
  script.message(2, MessageType::Ask).topic(1, 0, all_three).byte(1);
  script.act(Act::Poll).topic(1, 0, all_three);
  return script.text();
}

ScriptWriter member_that_voted(const Payload& decision, bool knows_others = true) {
  ScriptWriter script(Tested::Member, 3);
  if (knows_others) script.message(0, MessageType::Peers);
  script.act(Act::Say).topic(1, 0, all_three).byte(lockstep_kind).byte(long_time).bytes(vote());
  script.message(0, MessageType::Propose).topic(1, 0, all_three).byte(long_time).bytes(decision);
  return script;
}

std::string member_is_told(bool committed, const Payload& decision) {
  ScriptWriter script = member_that_voted(decision);
  script.message(0, MessageType::Verdict).topic(1, 0, all_three);
  script.byte(committed ? 0x81 : 0x04);
  script.act(Act::Poll).topic(1, 0, all_three);
  script.call(2, Purpose::Ask);
  script.message(1, MessageType::Ask).topic(1, 0, all_three).byte(1);
  script.message(0, MessageType::Done).topic(1, 0, all_three);
  return script.text();
}

std::string member_asks() {
  ScriptWriter script = member_that_voted(vote());
  script.act(Act::HangUp).byte(0).act(Act::Wait).act(Act::Answer).byte(2);
  script.message(1, MessageType::Tell).topic(1, 0, all_three).byte(0x82);
  script.act(Act::Poll).topic(1, 0, all_three);
  return script.text();
}

std::string member_can_ask_nobody() {
  ScriptWriter script = member_that_voted(vote(), false);
  script.act(Act::HangUp).byte(0).act(Act::Wait).act(Act::Poll).topic(1, 0, all_three);
  return script.text();
}

std::string member_is_late() {
  ScriptWriter script(Tested::Member, 3);
  script.act(Act::Occupied).topic(1, 0, all_three).byte(long_time);
  script.message(0, MessageType::Inquire).topic(1, 0, all_three);
  script.act(Act::Say).topic(1, 0, all_three).byte(lockstep_kind).byte(long_time).bytes({});
  script.message(0, MessageType::Occupied).topic(1, 0, all_three).byte(long_time).bytes({});
  script.act(Act::Withdraw).topic(1, 0, all_three);
  return script.text();
}

constexpr std::uint8_t all_four = 0b1111;
constexpr std::uint8_t relayed = 0b1100;

std::string hub_of_relay() {
  ScriptWriter script(Tested::Hub, 4);
  for (const std::uint8_t one : {1, 2, 3}) script.call(one, Purpose::Join);
  for (const std::uint8_t one : {0, 1, 2})
    script.message(one, MessageType::Listening).bytes(std::as_bytes(std::span("unix:nobody")));
  script.message(2, MessageType::Attach);
  script.act(Act::Say).topic(1, 0, all_four).byte(lockstep_kind).byte(long_time).bytes(vote());
  const auto from = [&](std::uint8_t connection, MessageType type) {
    connection == 0 ? script.message(0, type).topic(1, 0, all_four)
                    : script.message_of_several(1, type).topic(1, 0, all_four).byte(relayed);
    if (type == MessageType::Say) script.byte(lockstep_kind).byte(long_time).bytes(vote());
  };
  for (const MessageType type : {MessageType::Say, MessageType::Vote, MessageType::Acknowledge})
    for (const std::uint8_t one : both) from(one, type);
  script.act(Act::Poll).topic(1, 0, all_four);
  script.message(2, MessageType::Detach);
  return script.text();
}

std::string relay(bool is_left) {
  ScriptWriter script(Tested::Relay, 4);
  script.call(3, Purpose::Relay);
  script.act(Act::Say).topic(1, 0, all_four).byte(lockstep_kind).byte(long_time).bytes(vote());
  script.message(1, MessageType::Say).topic(1, 0, all_four);
  script.byte(lockstep_kind).byte(long_time).bytes(vote());
  script.message_of_several(0, MessageType::Propose).topic(1, 0, all_four).byte(relayed);
  script.byte(long_time).bytes(vote());
  if (is_left) script.act(Act::HangUp).byte(1);
  script.message(1, MessageType::Vote).topic(1, 0, all_four);
  script.act(Act::Wait);
  script.message_of_several(0, MessageType::Verdict).topic(1, 0, all_four).byte(relayed).byte(0x81);
  script.message(1, MessageType::Acknowledge).topic(1, 0, all_four);
  script.message_of_several(0, MessageType::Done).topic(1, 0, all_four).byte(relayed);
  script.act(Act::Poll).topic(1, 0, all_four);
  return script.text();
}

std::string served(bool relay_is_silent) {
  ScriptWriter script(Tested::Served, 4);
  script.message(0, MessageType::Relay).act(Act::Answer).byte(2);
  script.act(Act::Say).topic(1, 0, all_four).byte(lockstep_kind).byte(long_time).bytes(vote());
  if (relay_is_silent) script.message(0, MessageType::Inquire).topic(1, 0, all_four);
  const std::uint8_t from = relay_is_silent ? 0 : 1;
  script.message(from, MessageType::Propose).topic(1, 0, all_four).byte(long_time).bytes(vote());
  script.message(from, MessageType::Verdict).topic(1, 0, all_four).byte(0x81);
  script.act(Act::HangUp).byte(1).act(Act::Wait);
  script.message(0, MessageType::Done).topic(1, 0, all_four);
  script.act(Act::Poll).topic(1, 0, all_four);
  return script.text();
}

std::string untruth(std::uint8_t field) {
  ScriptWriter script = hub_of_three();
  const Payload body(20, std::byte{1});
  script.act(Act::Frame).byte(0).byte(7).byte(1).bytes({});
  script.act(Act::Untruth).byte(0).byte(0).byte(field);
  for (int i = 0; i < 4; ++i) script.byte(9);
  script.byte(4).bytes(body);
  script.act(Act::Bytes).byte(1).byte(3).bytes(body);
  script.act(Act::Stranger).bytes(Payload(rank::proof_bytes));
  return script.text();
}

std::string blocks(bool same_host, const std::string& refusal) {
  std::string text = ScriptWriter(Tested::Gathering, 3).text();
  for (std::uint32_t one = 0; one < 3; ++one) {
    rank::Standing standing;
    if (one == 2) standing.refusal = refusal;
    const rank::HostIdentity host{same_host ? 1U : one, {"127.0.0.1", "[::1]"}};
    const rank::GatheredRendezvous made(one, 3, standing, host);
    for (const std::byte byte : made.block()) text.push_back(static_cast<char>(byte));
  }
  return text;
}

}  // namespace
}  // namespace contextune::fuzz

FuzzInputs fuzz_inputs() {
  using namespace contextune::fuzz;
  FuzzInputs inputs;
  ScriptWriter agreed = hub_of_three();
  agree(agreed, 0, lockstep_kind, vote());
  agree(agreed, 1, lockstep_kind, {});
  contextune::Batch batch;
  batch.number = 1;
  batch.new_sites.push_back({"gemm", "n=1", 5, 3, contextune::Objective::Own, {}, {}, {}});
  batch.passes.push_back({5, contextune::Stage::Confirm, contextune::Measure::Span, {1, 2}});
  inputs.seeds = {agreed.text(),
                  several_batches(),
                  late_rank(),
                  domain(),
                  lost_rank(),
                  member_is_told(true, encode(batch)),
                  member_is_told(false, vote()),
                  member_asks(),
                  member_can_ask_nobody(),
                  member_is_late(),
                  hub_of_relay(),
                  relay(false),
                  relay(true),
                  served(false),
                  served(true),
                  blocks(true, ""),
                  blocks(false, ""),
                  blocks(true, "it is tuned alone")};
  for (std::uint8_t field = 0; field < 8; ++field) inputs.seeds.push_back(untruth(field));
  for (const std::string& seed : inputs.seeds)
    for (std::size_t at = 2; at + 12 <= seed.size() && inputs.words.size() < 400; at += 12)
      inputs.words.push_back(seed.substr(at, 12));
  return inputs;
}
