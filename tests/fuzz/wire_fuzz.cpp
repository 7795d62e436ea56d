// Other ranks, and strangers, do and send anything to a rank that agrees through its sockets, as
// its program uses it: they are understood or turned away, what the rank sends can be read by all,
// and what it has agreed on all have voted for. Nothing is replaced: the coordinator, its thread,
// its deciders.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "core/agreement/batch_message.hpp"
#include "core/agreement/batch_planner.hpp"
#include "core/agreement/domain_planner.hpp"
#include "core/agreement/replay_vote.hpp"
#include "core/coordination/lockstep.hpp"
#include "fuzz_target.hpp"
#include "rank/meeting/gathered_rendezvous.hpp"
#include "rank/star/socket_coordinator.hpp"
#include "rank/wire/endpoint.hpp"
#include "wire_peer.hpp"
#include "wire_script.hpp"

namespace contextune::fuzz {
namespace {

constexpr double tick_seconds = 0.002;
constexpr std::size_t most_acts = 64;
constexpr std::size_t most_peers = 8;
constexpr int most_waits = 2;

rank::Deciders deciders() {
  const auto of = [](auto planner) -> Coordinator::Decide {
    return [planner](const Topic& topic, std::span<const Payload> said, std::string& why) {
      return planner->decide(topic, said, why);
    };
  };
  return {{1, of(std::make_shared<GroupPlanners>())},
          {2, of(std::make_shared<DomainPlanner>())},
          {3, &Lockstep::decide}};
}

std::uint32_t rank_of(Tested tested) {
  switch (tested) {
    case Tested::Hub:
      return 0;
    case Tested::Relay:
      return 2;
    case Tested::Served:
      return 3;
    default:
      return 1;
  }
}

rank::SocketSettings settings_of(std::uint32_t own_rank, std::uint32_t num_ranks) {
  static unsigned count = 0;
  rank::SocketSettings settings;
  settings.rank = own_rank;
  settings.num_ranks = num_ranks;
  settings.job = "fuzz-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  settings.address = "unix:contextune-" + settings.job;
  settings.secret = "a secret of the fuzzers";
  settings.heartbeat_seconds = tick_seconds;
  settings.silence_seconds = 1000;
  settings.recovery_seconds = 1;
  settings.fewest_relayed_ranks = 3;
  return settings;
}

/// What a rank makes of a decision.
void read_decision(const Payload& decision) {
  Batch batch;
  if (decode(decision, batch) && encode(batch) != decision)
    broken("a batch that was read is written as it was");
  static_cast<void>(decode_domain(decision));
  if (const auto vote = decode_vote(decision)) {
    if (!decode_vote(encode(*vote))) broken("a vote that was read can be read again");
  }
}

/// One rank, and all that a script has others do to it.
class Scene {
 public:
  Scene(Tested tested, std::uint32_t num_ranks)
      : settings_(settings_of(rank_of(tested), num_ranks)),
        job_{rank::key_of_secret(settings_.secret), rank::number_of_job(settings_.job), num_ranks} {
    std::string error;
    if (tested != Tested::Hub) hub_ = rank::listen_at(settings_.address, error);
    others_address_ = settings_.address + "-others";
    others_ = rank::listen_at(others_address_, error);
    if (others_ < 0 || (tested != Tested::Hub && hub_ < 0)) broken("sockets can be made");
    own_ = std::make_unique<rank::SocketCoordinator>(settings_, deciders());
    addresses_.assign(num_ranks, others_address_);
    addresses_[0] = settings_.address;
    if (tested != Tested::Hub) take_call(hub_, 0);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  ~Scene() {
    for (const auto& peer : peers_) static_cast<void>(peer->received());
    if (hub_ < 0) check_still_agrees();
    own_ = nullptr;
    close(others_);
    if (hub_ >= 0) close(hub_);
  }

  void perform(Act act, ScriptReader& script) {
    switch (act) {
      case Act::Call:
      case Act::Stranger:
        return call(act, script);
      case Act::Answer:
        return take_call(others_, script.byte() % job_.num_ranks);
      case Act::Message:
      case Act::Frame:
      case Act::Untruth:
      case Act::Bytes:
      case Act::HangUp:
        return send(act, script);
      case Act::Wait:
        if (waits_++ < most_waits)
          std::this_thread::sleep_for(std::chrono::duration<double>(1.5 * tick_seconds));
        break;
      default:
        use_own(act, script);
    }
  }
  /// Takes what has come to the others.
  void listen() {
    for (const auto& peer : peers_) {
      for (rank::Message& message : peer->received()) {
        if (message.type == rank::MessageType::Peers) epoch_ = message.epoch;
        if (message.type == rank::MessageType::Listening && message.addresses.size() == 1)
          own_address_ = message.addresses.front();
      }
    }
  }

 private:
  void call(Act act, ScriptReader& script) {
    rank::Claim claim;
    claim.job = job_.number;
    if (act == Act::Call) {
      claim.rank = script.byte();
      claim.purpose = static_cast<rank::Purpose>(script.byte());
    }
    Job job = job_;
    switch (act == Act::Call ? script.byte() % 8 : 0) {
      case 1:
        ++claim.job;
        break;
      case 2:
        ++job.key.low;
        break;
      default:
        break;
    }
    const std::vector<std::byte> proof = act == Act::Stranger ? script.bytes() : Payload{};
    const std::string& address = hub_ < 0 ? settings_.address : own_address_;
    if (address.empty() || peers_.size() >= most_peers) return;
    rank::Endpoint endpoint;
    std::string error;
    int socket = -1;
    // The rank that is tested may not have got so far as to listen.
    for (int tries = 0; socket < 0 && tries < 100000; ++tries) {
      if (rank::find_endpoint(address, endpoint, error))
        socket = rank::start_connecting(endpoint, error);
      if (socket < 0) std::this_thread::yield();
    }
    if (socket < 0) broken("a rank listens for others as long as it lives");
    peers_.push_back(std::make_unique<WirePeer>(socket, job));
    if (act == Act::Stranger) return peers_.back()->prove_nothing(proof);
    if (!peers_.back()->prove(claim, settings_.rank)) return;
    if (job.key != job_.key) broken("nobody is welcome who does not know the secret");
    if (claim.purpose == rank::Purpose::Join) {
      if (hub_ >= 0) broken("only rank 0 is joined");
      if (joined_[claim.rank]++ != 0) broken("a rank joins once");
    }
  }

  void take_call(int listener, std::uint32_t as) {
    if (listener == hub_ && !becomes_readable(listener)) broken("a rank calls rank 0");
    const int socket = rank::accept_caller(listener);
    if (socket < 0) return;
    peers_.push_back(std::make_unique<WirePeer>(socket, job_));
    peers_.back()->answer(as, rank::Admission::Welcome);
  }

  void send(Act act, ScriptReader& script) {
    const std::size_t which = script.byte();
    WirePeer* const peer = peers_.empty() ? nullptr : peers_[which % peers_.size()].get();
    if (act == Act::HangUp) {
      if (peer != nullptr) peer->hang_up();
      return;
    }
    const std::size_t piece = script.byte();
    if (act == Act::Message) {
      const rank::Message message = script.message(job_.num_ranks, epoch_, addresses_);
      if (peer != nullptr && peer->is_open()) peer->send(message, piece);
      return;
    }
    Untruth untruth;
    if (act == Act::Untruth) {
      untruth.field = static_cast<Untruth::Field>(script.byte() % 8);
      untruth.value = script.word();
    }
    const std::uint8_t type = act == Act::Bytes ? 0 : script.byte();
    std::vector<std::byte> bytes = script.bytes();
    if (peer == nullptr) return;
    if (act == Act::Bytes) return peer->send(bytes, piece);
    // A rank calls whomever rank 0 names: here, nobody on a network.
    if (type == static_cast<std::uint8_t>(rank::MessageType::Peers) ||
        type == static_cast<std::uint8_t>(rank::MessageType::Relay)) {
      for (std::byte& one : bytes)
        if (one == std::byte{':'}) one = std::byte{';'};
    }
    peer->send(type, bytes, piece, untruth);
  }

  void use_own(Act act, ScriptReader& script) {
    const Topic topic = script.topic(job_.num_ranks);
    // What its program would not ask.
    if (!rank::has_rank(topic, settings_.rank) || !rank::fault_of(topic, job_.num_ranks).empty())
      return;
    if (act == Act::Say) {
      const std::uint32_t kind = script.byte();
      const double seconds = script.seconds();
      own_->say(topic, kind, script.bytes(), seconds);
    } else if (act == Act::Withdraw) {
      own_->withdraw(topic, "it is fuzzed");
    } else if (act == Act::Occupied) {
      own_->occupied(topic, script.seconds(), "is fuzzed");
    } else {
      const Agreement agreement = own_->wait(topic, tick_seconds);
      if (agreement.verdict != Verdict::Committed) return;
      read_decision(agreement.decision);
      if (hub_ >= 0) return;
      for (const std::uint32_t one : topic.ranks)
        if (one != settings_.rank && joined_[one] == 0)
          broken("nothing is committed without the vote of each of its ranks");
    }
  }

  /// Whatever others did, rank 0 agrees with itself.
  void check_still_agrees() {
    const rank::Nonce drawn = rank::random_nonce().value();
    Topic topic;
    std::memcpy(&topic.group, drawn.data(), sizeof(topic.group));
    topic.ranks = {0};
    own_->say(topic, 3, {std::byte{1}}, 20);
    if (own_->wait(topic, 20).verdict != Verdict::Committed || !own_->lost().empty())
      broken("rank 0 goes on whatever others do");
  }

  rank::SocketSettings settings_;
  Job job_;
  int hub_ = -1;     // where rank 0 listens, if it is not what is tested
  int others_ = -1;  // where other ranks do
  std::string others_address_;
  std::string own_address_;
  std::vector<std::string> addresses_;
  std::unique_ptr<rank::SocketCoordinator> own_;
  std::vector<std::unique_ptr<WirePeer>> peers_;
  std::map<std::uint32_t, int> joined_;
  std::uint64_t epoch_ = 5;
  int waits_ = 0;
};

void gather(std::uint32_t num_ranks, const std::vector<std::byte>& blocks) {
  rank::Standing standing;
  rank::GatheredRendezvous meeting(1, num_ranks, standing, rank::HostIdentity{1, {"127.0.0.1"}});
  const std::size_t wanted = num_ranks * rank::GatheredRendezvous::block_bytes;
  std::vector<std::byte> all(blocks);
  all.resize(wanted);
  const rank::Rendezvous found = meeting.read(all);
  if (found.error.empty() && found.num_ranks != num_ranks)
    broken("who meets knows how many there are");
}

}  // namespace
}  // namespace contextune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace contextune::fuzz;
  ScriptReader script(std::span(data, size));
  const auto tested = static_cast<Tested>(script.byte() % num_tested);
  const bool with_relay = tested == Tested::Relay || tested == Tested::Served;
  const std::uint32_t chosen = 2U + script.byte() % 3U;
  const std::uint32_t num_ranks = with_relay ? 4 : chosen;
  if (tested == Tested::Gathering) {
    gather(num_ranks, script.rest());
    return 0;
  }
  Scene scene(tested, num_ranks);
  for (std::size_t acts = 0; acts < most_acts && !script.at_end(); ++acts) {
    scene.perform(static_cast<Act>(script.byte() % num_acts), script);
    scene.listen();
  }
  return 0;
}
