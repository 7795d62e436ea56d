#include "collective.hpp"

#include <simcuda/simcuda.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>

#include "deadline.hpp"
#include "reduction.hpp"
#include "settings.hpp"

namespace simnccl {

namespace {

constexpr std::size_t alignment = 64;

// What a rank lays open for the others.
std::size_t shared_bytes(const Collective& one, int ranks) {
  const std::size_t bytes = one.count * element_bytes(one.type);
  const std::size_t all =
      one.function == reduce_scatter ? bytes * static_cast<std::size_t>(ranks) : bytes;
  return (all + alignment - 1) / alignment * alignment;
}

std::string describe(const Signature& what) {
  return std::string(name_of_function(what.function)) + " of " + std::to_string(what.bytes) +
         " bytes by " + name_of_algorithm(what.algorithm) + "/" + name_of_protocol(what.protocol) +
         " on " + std::to_string(what.channels) + " channels";
}

// One bin of one rank, from the call to its end. The driver calls it, locked.
class CollectiveWork {
 public:
  CollectiveWork(std::shared_ptr<Communicator> comm, const std::vector<Collective>& bin,
                 const Signature& signature, double seconds)
      : comm_(std::move(comm)),
        bin_(bin),
        signature_(signature),
        seconds_(seconds),
        sequence_(comm_->next_collective()),
        waiting_([this] { return description(); }) {
    seconds_ *= noise_factor(comm_->noise_stream(), sequence_);
  }

  void arrive(double start) { arrival_ = start; }

  [[nodiscard]] bool may_post() const {
    if (comm_->aborted() || sequence_ < collective_slots) return true;
    return slot(0).released.load(std::memory_order_acquire) > sequence_ - collective_slots;
  }

  void post() {
    if (comm_->aborted()) return;
    std::byte* to = comm_->segment().collective_data(comm_->rank(), sequence_);
    for (const Collective& one : bin_) {
      const std::size_t bytes = shared_bytes(one, comm_->ranks());
      const std::size_t elements = one.function == reduce_scatter ? one.count * ranks() : one.count;
      if (one.function != broadcast || one.root == comm_->rank())
        std::memcpy(to, one.send, elements * element_bytes(one.type));
      to += bytes;
    }
    CollectiveSlot& mine = slot(comm_->rank());
    mine.signature = signature_;
    mine.seconds = seconds_;
    mine.posted.store(sequence_ + 1, std::memory_order_release);
    posted_ = true;
  }

  [[nodiscard]] bool may_finish(double& end) {
    if (comm_->aborted()) {
      end = arrival_.value_or(0);
      return true;
    }
    if (arrival_ && posted_ && !arrived_) {
      CollectiveSlot& mine = slot(comm_->rank());
      mine.arrival = *arrival_;
      mine.arrived.store(sequence_ + 1, std::memory_order_release);
      arrived_ = true;
    }
    if (!arrived_) return false;
    double latest = 0, seconds = 0;
    for (int rank = 0; rank < comm_->ranks(); ++rank) {
      const CollectiveSlot& other = slot(rank);
      if (other.arrived.load(std::memory_order_acquire) != sequence_ + 1) return false;
      if (!(other.signature == signature_)) return false;  // now never
      latest = std::max(latest, other.arrival);
      seconds = std::max(seconds, other.seconds);
    }
    end = latest + seconds;
    return true;
  }

  void finish() {
    if (comm_->aborted()) return;
    std::size_t offset = 0;
    for (const Collective& one : bin_) {
      write_result(one, offset);
      offset += shared_bytes(one, comm_->ranks());
    }
    spoil();
    // The last one to have read gives the memory back, before anybody may use it again.
    CollectiveSlot& first = slot(0);
    if (first.readers.fetch_add(1, std::memory_order_acq_rel) + 1 < ranks()) return;
    first.readers.store(0, std::memory_order_relaxed);
    for (int rank = 0; rank < comm_->ranks(); ++rank)
      Segment::drop(comm_->segment().collective_data(rank, sequence_), offset);
    first.released.store(sequence_ + 1, std::memory_order_release);
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(comm_->ranks()); }
  [[nodiscard]] CollectiveSlot& slot(int rank) const {
    return comm_->segment().collective(rank, sequence_);
  }

  void write_result(const Collective& one, std::size_t offset) const {
    const std::size_t bytes = one.count * element_bytes(one.type);
    std::vector<const std::byte*> inputs;
    for (int rank = 0; rank < comm_->ranks(); ++rank)
      inputs.push_back(comm_->segment().collective_data(rank, sequence_) + offset);
    auto* const output = static_cast<std::byte*>(one.receive);
    const auto me = static_cast<std::size_t>(comm_->rank());
    switch (one.function) {
      case broadcast:
        std::memcpy(output, inputs[static_cast<std::size_t>(one.root)], bytes);
        break;
      case all_gather:
        for (std::size_t rank = 0; rank < inputs.size(); ++rank)
          std::memcpy(output + rank * bytes, inputs[rank], bytes);
        break;
      case reduce:
        if (one.root == comm_->rank()) add_up(one, inputs, one.count, me, output);
        break;
      case reduce_scatter:
        for (const std::byte*& input : inputs) input += me * bytes;
        add_up(one, inputs, one.count, me, output);
        break;
      default:
        add_up_pieces(one, inputs, output);
    }
  }

  void add_up(const Collective& one, const std::vector<const std::byte*>& inputs, std::size_t count,
              std::size_t piece, std::byte* output) const {
    const Order order = signature_.algorithm == ring   ? Order::in_ring
                        : signature_.algorithm == tree ? Order::in_pairs
                                                       : Order::by_rank;
    reduce_elements(one.type, one.op, order, (piece + 1) % ranks(), inputs, count, output);
  }

  // A ring begins each piece at another rank.
  void add_up_pieces(const Collective& one, std::vector<const std::byte*> inputs,
                     std::byte* output) const {
    const std::size_t element = element_bytes(one.type);
    const std::size_t piece = (one.count + ranks() - 1) / ranks();
    std::size_t left = one.count;
    for (std::size_t i = 0; left > 0; ++i) {
      const std::size_t count = std::min(piece, left);
      add_up(one, inputs, count, i, output);
      for (const std::byte*& input : inputs) input += count * element;
      output += count * element;
      left -= count;
    }
  }

  void spoil() const {
    const Choice choice{signature_.algorithm, signature_.protocol, signature_.channels,
                        signature_.bytes};
    if (signature_.function == reduce && signature_.root != comm_->rank()) return;
    if (Settings::instance().faults.find(Fault::Kind::wrong_result, comm_->rank(), choice))
      *static_cast<unsigned char*>(bin_.front().receive) ^= 1U;
  }

  // Called on the thread that watches the deadline, so only what other processes see too.
  [[nodiscard]] std::string description() const {
    std::string text = "collective " + std::to_string(sequence_) + ": rank " +
                       std::to_string(comm_->rank()) + " wants " + describe(signature_);
    for (int rank = 0; rank < comm_->ranks(); ++rank) {
      if (rank == comm_->rank()) continue;
      const CollectiveSlot& other = slot(rank);
      const bool there = other.posted.load(std::memory_order_acquire) == sequence_ + 1;
      text += "; rank " + std::to_string(rank) +
              (there ? " wants " + describe(other.signature) : std::string(" is not there"));
    }
    return text;
  }

  std::shared_ptr<Communicator> comm_;
  std::vector<Collective> bin_;
  Signature signature_;
  double seconds_;
  std::uint64_t sequence_;
  std::optional<double> arrival_;
  bool posted_ = false, arrived_ = false;
  Waiting waiting_;
};

CollectiveWork& work_of(void* data) {
  return *static_cast<CollectiveWork*>(data);
}

}  // namespace

std::size_t bytes_of_collective(const Collective& one, int ranks) {
  const std::size_t bytes = one.count * element_bytes(one.type);
  const bool all = one.function == all_gather || one.function == reduce_scatter;
  return all ? bytes * static_cast<std::size_t>(ranks) : bytes;
}

void enqueue_collectives(const std::shared_ptr<Communicator>& comm,
                         const std::vector<Collective>& bin, const Decision& decision,
                         CUstream stream) {
  const Collective& first = bin.front();
  Signature signature;
  signature.function = first.function;
  signature.type = first.type;
  signature.op = first.op;
  signature.root = first.root;
  signature.algorithm = decision.algorithm;
  signature.protocol = decision.protocol;
  signature.parts = static_cast<std::int32_t>(bin.size());
  signature.digest = digest({});
  std::size_t shared = 0;
  for (const Collective& one : bin) {
    signature.bytes += bytes_of_collective(one, comm->ranks());
    signature.digest =
        digest({reinterpret_cast<const char*>(&one.count), sizeof one.count}, signature.digest);
    shared += shared_bytes(one, comm->ranks());
  }
  require(shared <= collective_slot_bytes, ncclInvalidArgument,
          "simnccl moves at most 256 MiB of a rank in one operation");
  const Workload work{first.function, signature.bytes, comm->ranks()};
  signature.channels = channels_used(work, decision.algorithm, decision.protocol,
                                     decision.wanted_channels, comm->plan().channels);
  double seconds = seconds_of(work, decision.algorithm, decision.protocol, signature.channels);
  const Choice choice{decision.algorithm, decision.protocol, signature.channels, work.bytes};
  if (const Fault* const fault =
          Settings::instance().faults.find(Fault::Kind::slow, comm->rank(), choice))
    seconds *= fault->factor;

  simcuda_joint_work joint{};
  joint.arrive = [](void* data, double start) { work_of(data).arrive(start); };
  joint.may_post = [](void* data) { return work_of(data).may_post() ? 1 : 0; };
  joint.post = [](void* data) { work_of(data).post(); };
  joint.may_finish = [](void* data, double* end) { return work_of(data).may_finish(*end) ? 1 : 0; };
  joint.finish = [](void* data) { work_of(data).finish(); };
  joint.release = [](void* data) { delete static_cast<CollectiveWork*>(data); };
  joint.name = kernel_name(std::string(name_of_function(first.function)) + "_" +
                           name_of_algorithm(decision.algorithm) + "_" +
                           name_of_protocol(decision.protocol));
  joint.blocks = static_cast<unsigned>(signature.channels);
  joint.threads = decision.protocol == ll128 ? 640 : 512;
  joint.data = new CollectiveWork(comm, bin, signature, seconds);
  const int result = simcuda_enqueue_joint_work(comm->plan().context, stream, &joint);
  require(result != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, ncclInvalidUsage,
          "simnccl does not take part in stream captures");
  require(result == CUDA_SUCCESS, ncclUnhandledCudaError, "the stream takes no more work");
}

const char* kernel_name(const std::string& what) {
  static std::mutex mutex;
  static auto* const names = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return names->insert("ncclDevKernel_" + what + "(ncclDevKernelArgsStorage<4096ul>)")
      .first->c_str();
}

}  // namespace simnccl
