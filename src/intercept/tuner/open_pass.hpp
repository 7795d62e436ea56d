#pragma once

#include <cstdint>
#include <memory>

#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// The entry under way of one search, as what is launched in it reports to it. Any thread: of an
/// entry that has ended meanwhile nobody asks for a launch any more.
class OpenPass {
 public:
  explicit OpenPass(Search& search) noexcept : search_(search) {}

  /// Tag for one launch (or one tunable call).
  [[nodiscard]] std::uint64_t tag(SiteIndex site) const noexcept;
  /// A call begins that is timed as a span. Gives the tag of all its work.
  [[nodiscard]] std::uint64_t begin_call(SiteIndex site);
  /// A graph is about to be launched. Gives the launch's tag.
  [[nodiscard]] std::uint64_t begin_graph(const std::shared_ptr<const GraphWork>& work);

  /// Where the region is timed as a span, around each launch: before (`issued` false) and after.
  /// True: the entry needs to be told no more of that stream, until it is destroyed.
  bool touch(StreamHandle stream, bool issued) noexcept;
  /// The GPU begins it now, if it was held, and all that comes after at once.
  void let_go() noexcept;
  /// The program destroys a stream or a context that a span may depend on.
  void forget_stream(StreamHandle stream) noexcept;
  void forget_context(CUcontext context) noexcept;

  /// Work was issued. `calls` count as launches of the site; `records` are what the timer will
  /// deliver for them. no_site: work that only the region's time depends on.
  void launched(std::uint64_t tag, SiteIndex site, std::uint32_t calls, std::uint32_t records);
  /// A graph was launched. `apart`: the timer delivers each of its kernels with its shape; else
  /// `records` for the whole.
  void graph_launched(std::uint64_t tag, const GraphWork& work, bool apart, std::uint32_t records);

  /// The site's config could not be launched; the default ran.
  void failed(std::uint64_t tag, SiteIndex site);
  /// NCCL took so many bytes for the connections that it needs, which is more than it may.
  void took_too_much(std::uint64_t tag, SiteIndex site, std::uint64_t bytes);
  /// It did what it does once only, as a collective connects.
  /// @param seconds that the program was in the call
  void was_held_up(std::uint64_t tag, SiteIndex site, double seconds);
  /// Another config than was planned ran: it is no sample of either.
  void ran_another(std::uint64_t tag, SiteIndex site);
  /// It is no pass, for that reason.
  void spoil(FallbackReason reason);

  /// Whether the body, of an entry that is held, has run for the first time of two.
  [[nodiscard]] bool is_to_run_again() const;
  /// It runs for the second time, in place of Search::begin. False: that is not due.
  [[nodiscard]] bool run_again();

  /// Whether it is judged by the region's time.
  [[nodiscard]] bool compares_regions() const;
  /// Whether it counts, however it is timed.
  [[nodiscard]] bool counts() const;

 private:
  /// Null: the entry that the tag is of has ended. Under the search's lock.
  [[nodiscard]] PassRecord* record_of(std::uint64_t tag) const noexcept;

  Search& search_;
};

}  // namespace contextune::intercept
