#include "message.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "deadline.hpp"
#include "device_kernel.hpp"

namespace simnccl {

namespace {

struct NumberedMessage {
  Message message;
  std::uint64_t sequence = 0;  // among those between these two ranks in this direction
};

// The messages of one group, from the call to their end.
class MessageWork final : public KernelRun {
 public:
  MessageWork(std::shared_ptr<Communicator> comm, const std::vector<Message>& messages)
      : comm_(std::move(comm)), waiting_([this] { return description(); }) {
    for (const Message& one : messages)
      messages_.push_back(
          {one, one.sends ? comm_->next_sent(one.peer) : comm_->next_received(one.peer)});
  }

  void arrive(double start) override { arrival_ = start; }

  [[nodiscard]] bool may_post() const override {
    if (comm_->aborted()) return true;
    return std::all_of(messages_.begin(), messages_.end(), [this](const NumberedMessage& one) {
      return !one.message.sends || one.sequence < message_slots ||
             slot(one).fetched.load(std::memory_order_acquire) > one.sequence - message_slots;
    });
  }

  void post() override {
    if (comm_->aborted()) return;
    for (const NumberedMessage& one : messages_) {
      if (!one.message.sends) continue;
      std::memcpy(data(one), one.message.from, one.message.bytes);
      slot(one).bytes = one.message.bytes;
      slot(one).posted.store(one.sequence + 1, std::memory_order_release);
    }
    posted_ = true;
  }

  [[nodiscard]] bool may_finish(double& end) override {
    if (comm_->aborted()) {
      end = arrival_.value_or(0);
      return true;
    }
    if (!posted_ || !arrival_) return false;
    if (!std::exchange(arrived_, true)) say_arrived();
    double latest = *arrival_;
    for (const NumberedMessage& one : messages_) {
      const MessageSlot& at = slot(one);
      const auto& other = one.message.sends ? at.receiver_arrived : at.sender_arrived;
      if (other.load(std::memory_order_acquire) <= one.sequence) return false;
      if (!one.message.sends && at.bytes != one.message.bytes) return false;  // now never
      const double with =
          std::max(*arrival_, one.message.sends ? at.receiver_arrival : at.sender_arrival);
      const std::uint64_t pair = static_cast<std::uint64_t>(comm_->rank() ^ one.message.peer) + 1;
      latest =
          std::max(latest, with + seconds_of_message(one.message.bytes) *
                                      noise_factor(comm_->noise_stream() + pair, one.sequence));
    }
    end = latest;
    return true;
  }

  void finish() override {
    if (comm_->aborted()) return;
    for (const NumberedMessage& one : messages_) {
      if (one.message.sends) continue;
      std::memcpy(one.message.to, data(one), one.message.bytes);
      Segment::drop(data(one), one.message.bytes);
      slot(one).fetched.store(one.sequence + 1, std::memory_order_release);
    }
  }

 private:
  [[nodiscard]] int sender(const NumberedMessage& one) const {
    return one.message.sends ? comm_->rank() : one.message.peer;
  }
  [[nodiscard]] int receiver(const NumberedMessage& one) const {
    return one.message.sends ? one.message.peer : comm_->rank();
  }
  [[nodiscard]] MessageSlot& slot(const NumberedMessage& one) const {
    return comm_->segment().message(sender(one), receiver(one), one.sequence);
  }
  [[nodiscard]] std::byte* data(const NumberedMessage& one) const {
    return comm_->segment().message_data(sender(one), receiver(one), one.sequence);
  }

  void say_arrived() const {
    for (const NumberedMessage& one : messages_) {
      MessageSlot& at = slot(one);
      (one.message.sends ? at.sender_arrival : at.receiver_arrival) = *arrival_;
      (one.message.sends ? at.sender_arrived : at.receiver_arrived)
          .store(one.sequence + 1, std::memory_order_release);
    }
  }

  [[nodiscard]] std::string description() const {
    return "rank " + std::to_string(comm_->rank()) + " sends or receives, and a peer does not";
  }

  std::shared_ptr<Communicator> comm_;
  std::vector<NumberedMessage> messages_;
  std::optional<double> arrival_;
  bool posted_ = false, arrived_ = false;
  Waiting waiting_;
};

class MessagePlan final : public KernelPlan {
 public:
  MessagePlan(std::shared_ptr<Communicator> comm, std::vector<Message> messages)
      : KernelPlan(std::move(comm)), messages_(std::move(messages)) {}

  [[nodiscard]] std::unique_ptr<KernelRun> begin() const override {
    return std::make_unique<MessageWork>(comm(), messages_);
  }

 private:
  std::vector<Message> messages_;
};

}  // namespace

void enqueue_messages(const std::shared_ptr<Communicator>& comm,
                      const std::vector<Message>& messages, CUstream stream) {
  std::map<std::pair<bool, int>, std::size_t> of_peer;
  for (const Message& one : messages) {
    require(one.bytes <= message_slot_bytes, ncclInvalidArgument,
            "simnccl moves at most 64 MiB in one message");
    require(++of_peer[{one.sends, one.peer}] <= message_slots, ncclInvalidUsage,
            "simnccl takes at most 8 messages to or from one rank in a group");
  }
  launch_kernel(
      std::make_unique<MessagePlan>(comm, messages),
      {"SendRecv", static_cast<unsigned>(std::min<std::size_t>(messages.size(), 16)), 512}, stream);
}

}  // namespace simnccl
