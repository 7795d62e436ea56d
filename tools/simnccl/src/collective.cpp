#include "collective.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "deadline.hpp"
#include "device_kernel.hpp"
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

Scalar value_of(const Scale& scale, ncclDataType_t type) {
  Scalar value = scale.value;
  if (scale.on_device != nullptr) std::memcpy(value.data(), scale.on_device, element_bytes(type));
  return value;
}

std::string describe(const Signature& what) {
  return std::string(name_of_function(what.function)) + " of " + std::to_string(what.bytes) +
         " bytes by " + name_of_algorithm(what.algorithm) + "/" + name_of_protocol(what.protocol) +
         " on " + std::to_string(what.channels) + " channels";
}

// One bin of one rank, from the call to its end.
class CollectiveWork final : public KernelRun {
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

  void arrive(double start) override { arrival_ = start; }

  [[nodiscard]] bool may_post() const override {
    if (comm_->aborted() || sequence_ < collective_slots) return true;
    return slot(0).released.load(std::memory_order_acquire) > sequence_ - collective_slots;
  }

  void post() override {
    if (comm_->aborted()) return;
    std::byte* to = comm_->segment().collective_data(comm_->rank(), sequence_);
    for (const Collective& one : bin_) {
      const std::size_t bytes = shared_bytes(one, comm_->ranks());
      const std::size_t elements = one.function == reduce_scatter ? one.count * ranks() : one.count;
      if (one.function != broadcast || one.root == comm_->rank())
        std::memcpy(to, one.send, elements * element_bytes(one.type));
      if (one.scale) scale_elements(one.type, value_of(*one.scale, one.type), to, elements);
      to += bytes;
    }
    CollectiveSlot& mine = slot(comm_->rank());
    mine.signature = signature_;
    mine.seconds = seconds_;
    mine.posted.store(sequence_ + 1, std::memory_order_release);
    posted_ = true;
  }

  [[nodiscard]] bool may_finish(double& end) override {
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

  void finish() override {
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

class CollectivePlan final : public KernelPlan {
 public:
  CollectivePlan(std::shared_ptr<Communicator> comm, std::vector<Collective> bin,
                 const Signature& signature, double seconds)
      : KernelPlan(std::move(comm)),
        bin_(std::move(bin)),
        signature_(signature),
        seconds_(seconds) {}

  [[nodiscard]] std::unique_ptr<KernelRun> begin() const override {
    return std::make_unique<CollectiveWork>(comm(), bin_, signature_, seconds_);
  }

 private:
  std::vector<Collective> bin_;
  Signature signature_;
  double seconds_;
};

/// A line of SIMNCCL_TRACE: what the collective is done with.
void trace(const Communicator& comm, const Signature& signature) {
  const std::string& path = Settings::instance().trace;
  if (path.empty()) return;
  static std::FILE* const file = std::fopen((path + '.' + std::to_string(getpid())).c_str(), "ae");
  if (file == nullptr) return;
  std::fprintf(file, "%s %zu ranks=%d %s/%s %d\n", name_of_function(signature.function),
               static_cast<std::size_t>(signature.bytes), comm.ranks(),
               name_of_algorithm(signature.algorithm), name_of_protocol(signature.protocol),
               signature.channels);
  std::fflush(file);
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
  signature.op = std::min(first.op, ncclNumOps);  // each rank numbers its own operations
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

  trace(*comm, signature);
  launch_kernel(
      std::make_unique<CollectivePlan>(comm, bin, signature, seconds),
      {kernel_name(first.function, decision.algorithm, first.type),
       static_cast<unsigned>(signature.channels), decision.protocol == ll128 ? 640U : 512U},
      stream);
}

}  // namespace simnccl
