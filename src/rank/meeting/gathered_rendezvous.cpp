#include "rank/meeting/gathered_rendezvous.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/value/byte_stream.hpp"
#include "core/value/hexadecimal.hpp"
#include "rank/wire/endpoint.hpp"
#include "rank/wire/frame.hpp"
#include "rank/wire/handshake.hpp"
#include "rank/wire/message.hpp"
#include "rank/wire/standard_descriptors.hpp"

namespace contextune::rank {
namespace {

constexpr std::uint32_t block_magic = 0x52617463;  // "ctaR"
constexpr std::uint16_t block_version = 2;
constexpr std::size_t most_refusal_bytes = 150;
constexpr std::size_t most_address_bytes = 256;
constexpr std::size_t secret_bytes = 2 * sizeof(Nonce);

struct Said {
  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 0;
  std::uint64_t host = 0;
  std::uint64_t job = 0;
  std::uint32_t job_rank = 0;
  std::uint32_t job_ranks = 0;
  std::string refusal;
  std::string secret;   // of rank 0
  std::string address;  // of rank 0: "tcp:A,B:PORT", or empty: it listens nowhere
};

Rendezvous no_meeting(std::string error) {
  Rendezvous result;
  result.source = "communicator";
  result.error = std::move(error);
  return result;
}

std::optional<std::string> draw_secret() {
  std::string secret;
  while (secret.size() < secret_bytes) {
    const std::optional<Nonce> drawn = random_nonce();
    if (!drawn) return std::nullopt;
    for (const std::byte byte : *drawn) secret.push_back(static_cast<char>(byte));
  }
  return secret;
}

// "tcp:*:PORT" with all of the host's addresses.
std::string address_of(const Listener& listener, const HostIdentity& host) {
  const std::string anywhere = address_of_listener(listener.socket());
  const std::size_t star = anywhere.find('*');
  std::string hosts;
  for (const std::string& address : host.addresses) {
    if (hosts.size() + address.size() > most_address_bytes) break;
    hosts += (hosts.empty() ? "" : ",") + address;
  }
  if (star == std::string::npos || hosts.empty()) return {};
  return anywhere.substr(0, star) + hosts + anywhere.substr(star + 1);
}

std::optional<Said> parse(std::span<const std::byte> block, std::string& fault) {
  ByteReader reader(block);
  Said said;
  if (reader.number<std::uint32_t>() != block_magic) {
    fault = "its message is not contextune's";
    return std::nullopt;
  }
  if (reader.number<std::uint16_t>() != block_version ||
      reader.number<std::uint16_t>() != frame_version) {
    fault = "it has another version of contextune";
    return std::nullopt;
  }
  said.rank = reader.number<std::uint32_t>();
  said.num_ranks = reader.number<std::uint32_t>();
  said.host = reader.number<std::uint64_t>();
  said.job = reader.number<std::uint64_t>();
  said.job_rank = reader.number<std::uint32_t>();
  said.job_ranks = reader.number<std::uint32_t>();
  said.refusal = reader.text();
  said.secret = reader.text();
  said.address = reader.text();
  if (reader.failed()) {
    fault = "its message is cut off";
    return std::nullopt;
  }
  return said;
}

std::string name_of_job(const std::string& secret) {
  return "communicator-" + hexadecimal(number_of_job(secret));
}

}  // namespace

GatheredRendezvous::GatheredRendezvous(std::uint32_t rank, std::uint32_t num_ranks,
                                       Standing standing, HostIdentity host)
    : rank_(rank), num_ranks_(num_ranks), host_(std::move(host)) {
  write(std::move(standing));
}

void GatheredRendezvous::write(Standing standing) {
  std::string& refusal = standing.refusal;
  std::string secret;
  std::string address;
  if (rank_ == 0 && refusal.empty()) {
    const StandardDescriptorsTaken taken;
    const std::optional<std::string> drawn = draw_secret();
    if (drawn) {
      secret = *drawn;
    } else {
      refusal = "the system has no random numbers";
    }
    std::string ignored;  // needed past one host only, which will be said then
    if (const int socket = listen_at("tcp:", ignored); socket >= 0) {
      listener_ = std::make_shared<Listener>(socket);
      address = address_of(*listener_, host_);
    }
  }
  if (refusal.size() > most_refusal_bytes) refusal.resize(most_refusal_bytes);
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.number(block_magic);
  writer.number(block_version);
  writer.number(frame_version);
  writer.number(rank_);
  writer.number(num_ranks_);
  writer.number(host_.local);
  writer.number(standing.job);
  writer.number(standing.job_rank);
  writer.number(standing.job_ranks);
  writer.text(refusal);
  writer.text(secret);
  writer.text(address);
  std::copy_n(bytes.begin(), std::min(bytes.size(), block_.size()), block_.begin());
}

Rendezvous GatheredRendezvous::read(std::span<const std::byte> blocks) {
  if (blocks.size() != num_ranks_ * block_bytes)
    return no_meeting("the blocks of " + std::to_string(num_ranks_) + " ranks were to be gathered");
  Rendezvous result;
  result.source = "communicator";
  result.rank = rank_;
  result.num_ranks = num_ranks_;
  std::string address;
  bool one_host = true;
  std::uint64_t host_of_rank_0 = 0;
  std::set<std::uint64_t> jobs;
  std::set<std::uint32_t> of_job;
  std::uint32_t job_ranks = 0;
  std::string refusal;
  for (std::uint32_t rank = 0; rank < num_ranks_; ++rank) {
    std::string fault;
    const auto said = parse(blocks.subspan(rank * block_bytes, block_bytes), fault);
    if (said && (said->rank != rank || said->num_ranks != num_ranks_))
      fault = "it is " + name_of(said->rank) + " of " + std::to_string(said->num_ranks) + " there";
    if (!fault.empty()) return no_meeting(name_of(rank) + " does not take part: " + fault);
    jobs.insert(said->job);
    of_job.insert(said->job_rank);
    job_ranks = std::max(job_ranks, said->job_ranks);
    if (refusal.empty() && !said->refusal.empty())
      refusal = name_of(rank) + " does not take part: " + said->refusal;
    if (rank == 0) {
      host_of_rank_0 = said->host;
      address = said->address;
      result.secret = said->secret;
    }
    if (said->host != host_of_rank_0) one_host = false;
    if (rank < rank_ && said->host == host_.local) ++result.local_rank;
  }
  if (jobs.size() == 1 && *jobs.begin() != 0) {
    if (of_job.size() == job_ranks) return result;
    return no_meeting("the communicator has " + std::to_string(of_job.size()) + " of the " +
                      std::to_string(job_ranks) + " ranks that are tuned together already");
  }
  if (!refusal.empty()) return no_meeting(refusal);
  if (num_ranks_ == 1) return result;
  result.job = name_of_job(result.secret);
  if (one_host) {
    result.address = "unix:contextune-" + result.job;
    listener_.reset();
  } else {
    if (address.empty()) return no_meeting("rank 0 can be reached at no TCP address");
    result.address = address;
    result.listener = listener_;
  }
  return result;
}

}  // namespace contextune::rank
