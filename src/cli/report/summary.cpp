#include "cli/report/summary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "cli/report/config_times.hpp"
#include "cli/words/colour.hpp"
#include "cli/words/text.hpp"
#include "core/submission/submission.hpp"
#include "core/value/take_until.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

using log::ConfirmReport;
using log::KernelReport;
using log::printable;
using log::ProcessReport;
using log::RegionReport;
using log::SiteReport;

// Rows of a site in a summary; a region with many sites shows only default and winner of each.
constexpr std::size_t few_rows = 5;
constexpr std::size_t most_sites_with_rows = 16;

// A text from another program may have lines of its own.
std::string in_lines(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    if (!line.empty()) result += (result.empty() ? "" : "\n      ") + printable(line);
  }
  return result;
}

// Stands behind every figure that no GPU has shown.
std::string mark(const ProcessReport& process) {
  return process.simulated ? " (simulated)" : "";
}

std::string heading(const ProcessReport& process) {
  std::string text = "contextune: " + printable(process.program.empty() ? "run" : process.program) +
                     ", run " + printable(process.run) + ", rank " + std::to_string(process.rank) +
                     ", pid " + std::to_string(process.pid) + "\n";
  return text + device_line(process);
}

std::string gain_text(const ConfirmReport& confirm) {
  if (!std::isfinite(confirm.gain)) return {};
  std::string text = ", " + percent_text(std::abs(confirm.gain));
  text += confirm.gain >= 0 ? " less" : " more";
  if (!std::isfinite(confirm.bound)) return text;
  if (confirm.bound > 0) {
    return text + " (with 95 % confidence at least " + percent_text(confirm.bound) + ")";
  }
  return text + " (its 95 % bound, " + percent_text(confirm.bound) + ", is not above zero)";
}

std::string verdict_text(const ConfirmReport& confirm) {
  if (confirm.verdict == "kept") return "the winners are kept";
  if (confirm.verdict == "reduced") return "some of the winners are kept";
  if (confirm.verdict == "defaults") return "not shown to be faster: the defaults are kept";
  if (confirm.verdict == "skipped") return "not compared with the defaults";
  return confirm.verdict;
}

std::string confirm_line(const ProcessReport& process, const ConfirmReport& confirm,
                         std::string_view of = {}) {
  std::string text = "    " + std::string(of);
  if (std::isfinite(confirm.before_seconds) && std::isfinite(confirm.after_seconds)) {
    const bool alone = !confirm.site.empty();
    // The gain is the mean over the pairs, and each time a median: the second one is what the pairs
    // make of the first, so that all three agree.
    const double after = std::isfinite(confirm.gain) ? confirm.before_seconds * (1 - confirm.gain)
                                                     : confirm.after_seconds;
    text += (alone ? printable(confirm.site) : "region time") + " " +
            time_text(confirm.before_seconds) +
            (alone ? " with the default, " : " with the defaults, ") + time_text(after) +
            (alone ? " with the winner" : " with the winners") + gain_text(confirm) + ", " +
            count_text(confirm.pairs, "pair", "pairs") + " of passes" + mark(process) + ": ";
  }
  const bool is_won = confirm.verdict == "kept" || confirm.verdict == "reduced";
  return text + in_tone(is_won ? Tone::Good : Tone::Warning, printable(verdict_text(confirm))) +
         "\n";
}

std::string replay_line(const ProcessReport& process, const RegionReport& region) {
  const log::ReplayReport& last = region.replays.back();
  double seconds = 0;
  for (const log::ReplayReport& replay : region.replays) seconds += replay.seconds;
  std::string text = "    replayed in " + count_text(last.visit, "visit", "visits") + ": " +
                     count_text(last.replays, "replay", "replays") + " of " +
                     count_text(last.operations, "operation", "operations") + ", ";
  // The others are those that are not timed.
  const bool follow = last.timed_after == "itself";
  text += (follow ? "the timed ones right after another, " : "") + bytes_text(last.dirty_bytes) +
          " put back before " + (follow ? "the others" : "each");
  if (std::isfinite(seconds)) {
    text += ", the program stood still for " + time_text(seconds) + mark(process);
  }
  return text + "\n";
}

std::string times_text(const log::FallbackReport& fallback) {
  return fallback.count > 1 ? " (" + std::to_string(fallback.count) + " times)" : std::string();
}

std::string live_line(const RegionReport& region, const log::FallbackReport* why) {
  if (why == nullptr && region.entries == 0) return {};
  std::string text = region.entries > 0
                         ? "live over " + count_text(region.entries, "visit", "visits")
                         : "not replayed";
  if (why != nullptr) {
    text += ", because " + printable(why->reason) + times_text(*why) + ": " + in_lines(why->text);
  }
  return "    " + text + "\n";
}

std::string mode_line(const ProcessReport& process, const RegionMode& mode,
                      const RegionReport& region) {
  if (mode.word == "replay") return replay_line(process, region);
  return mode.word == "live" ? live_line(region, mode.why) : std::string();
}

std::string cost_line(const ProcessReport& process, const RegionMode& mode,
                      const RegionReport& region) {
  std::string text = "    " + count_text(region.passes, "pass", "passes");
  // Where the mode is told, so are the visits.
  if (region.entries > 0 && mode.word.empty()) {
    text += " of " + count_text(region.entries, "entry", "entries");
  }
  if (std::isfinite(region.tuning_seconds)) {
    text += ", " + time_text(region.tuning_seconds) + " of tuning" + mark(process);
  }
  if (!region.stage.empty()) {
    text +=
        region.stage == "finished" ? "; finished" : "; ended in stage " + printable(region.stage);
  }
  return text + "\n";
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::string_view word = take_until(text, ' ');
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

// "chained, gathered by 16" for "chained gathered=16".
std::string submission_text(std::string_view launches) {
  const auto known = submission_of(launches);
  if (!known || known->is_as_written()) return printable(launches);
  std::string text = known->chained ? "chained" : "";
  if (known->ordinary != 0) {
    const auto kernels = static_cast<unsigned>(std::popcount(known->ordinary));
    text += " but for " + count_text(kernels, "kernel", "kernels");
  }
  if (known->gathered > 0)
    text += (text.empty() ? "gathered by " : ", gathered by ") + std::to_string(known->gathered);
  return text;
}

std::string launches_line(const ProcessReport& process, const RegionReport& region,
                          const log::SubmissionEvent& submission) {
  const std::string text = submission_text(submission.launches);
  if (submission.state == "pinned") return "    launches: " + text + ", as --force says\n";
  if (submission.state == "turns") {
    const std::string turns =
        "    launches: " + text + " in turns with as written, as --force says";
    if (region.confirms.empty()) return turns + "; too few blocks to compare them\n";
    const ConfirmReport& confirm = region.confirms.back();
    // In logarithms, the interval is as wide on either side.
    const double ratio = 1 / (1 - confirm.gain);
    const double low = 1 / (1 - confirm.bound);
    return turns + ": " + ratio_text(ratio) + " times as fast (95 % interval " + ratio_text(low) +
           " to " + ratio_text(ratio * ratio / low) + ", " +
           count_text(confirm.pairs, "pair", "pairs") + ")" + mark(process) + "\n";
  }
  if (submission.state == "nothing") return "    launches: as written, since nothing repeats\n";
  if (submission.state == "nccl") return "    launches: as written, since most are NCCL's\n";
  if (submission.state == "fatal")
    return "    launches: as written, since an earlier run did not come to its end otherwise\n";
  if (submission.state == "open") {
    const bool is_last = submission.run >= submission.most_runs;
    return "    " + in_tone(Tone::Warning, "not settled yet") + " (run " +
           std::to_string(submission.run) + " of at most " + std::to_string(submission.most_runs) +
           "): launches go out " + text + " so far, and the next run " +
           (is_last ? "stays with that\n" : "goes on from here\n");
  }
  if (region.confirms.empty() || region.confirms.back().verdict != "kept")
    return "    launches: as written, since nothing else was shown to be faster" +
           (submission.screened.empty()
                ? std::string()
                : " (times as long: " + printable(submission.screened) + ")") +
           "\n";
  const ConfirmReport& confirm = region.confirms.back();
  return "    launches: " + in_tone(Tone::Good, text) + ": " + percent_text(confirm.gain) +
         " less time than as written (with 95 % confidence at least " +
         percent_text(confirm.bound) + ", " + count_text(confirm.pairs, "pair", "pairs") + ")" +
         mark(process) + "\n";
}

// How its launches go out is being searched.
bool is_searched(const RegionReport& region) {
  return region.stage == "screen" || region.stage == "compare";
}

// The effects and the costs of chaining and gathering.
std::string submission_lines(const ProcessReport& process, const RegionReport& region) {
  if (!region.submission) {
    return is_searched(region) ? "    the search for how launches go out did not come to its end\n"
                               : "";
  }
  const log::SubmissionEvent& submission = *region.submission;
  std::string text = launches_line(process, region, submission);
  std::string did;
  if (submission.chained > 0)
    did = count_text(submission.chained, "launch", "launches") + " chained in the stream";
  if (submission.graph_launches > 0) {
    did += (did.empty() ? "" : ", ") + count_text(submission.graph_launches, "graph", "graphs") +
           " of " + count_text(submission.in_graphs, "launch", "launches") + " handed over";
  }
  if (submission.chained_graph_launches > 0) {
    did += (did.empty() ? "" : ", ") +
           count_text(submission.chained_graph_launches, "launch", "launches") + " of " +
           count_text(submission.chained_graphs, "graph", "graphs") +
           " of the program's chained at " + count_text(submission.chained_edges, "edge", "edges");
  }
  if (submission.graph_bytes > 0)
    did += (did.empty() ? "" : "; ") + bytes_text(submission.graph_bytes) +
           " of device memory taken by graphs";
  if (!did.empty()) text += "    " + did + "\n";
  if (!submission.ordinary.empty())
    text += "    not chained, since it is faster so: " + printable(submission.ordinary) + "\n";
  if (submission.images + submission.images_left == 0) return text;
  text += "    " + count_text(submission.images, "image", "images") + " with " +
          count_text(submission.kernels, "kernel", "kernels") + " given waits, " +
          std::to_string(submission.images_left) + " left alone" +
          (submission.images_unneeded == 0
               ? "; "
               : ", " + std::to_string(submission.images_unneeded) + " not needed here; ") +
          bytes_text(submission.kept_bytes) + " of host memory kept";
  if (std::isfinite(submission.load_seconds))
    text += ", " + time_text(submission.load_seconds) + " spent at loads" + mark(process);
  return text + "\n";
}

// The findings of --discover beside kernels.
std::string discovered_text(const ProcessReport& process, const RegionReport& region) {
  std::string text;
  if (!region.periods.empty()) text = "contextune: what repeats" + mark(process) + "\n";
  for (const std::string& period : region.periods) text += "  " + printable(period) + "\n";
  if (!region.ranges.empty())
    text += "contextune: NVTX ranges, for --region nvtx:NAME: " + printable(region.ranges) + "\n";
  return text;
}

bool is_found(const RegionReport& region) {
  return region.submission.has_value() || !region.found.empty() || is_searched(region);
}

// Fallbacks that the lines of the regions tell.
std::unordered_set<const log::FallbackReport*> told_above(const ProcessReport& process) {
  const RegionModes modes(process);
  std::unordered_set<const log::FallbackReport*> told;
  for (const RegionReport& region : process.regions) {
    told.insert(modes.of(region).why);
    if (!region.submission || region.submission->state != "open") continue;
    for (const log::FallbackReport& one : process.fallbacks)
      if (one.reason == "not_settled" && one.region == region.name) told.insert(&one);
  }
  return told;
}

}  // namespace

std::string device_line(const ProcessReport& process) {
  if (!process.started) return {};
  std::string text = "  " + printable(process.gpu.empty() ? "unknown GPU" : process.gpu);
  if (process.num_sms > 0) text += ", " + std::to_string(process.num_sms) + " SMs";
  if (!process.driver.empty()) text += ", driver " + printable(process.driver);
  if (!process.timer.empty()) text += ", launches timed by " + printable(process.timer);
  if (process.simulated) text += "; a simulated driver: no figure here is of a real GPU";
  return text + "\n";
}

std::string region_title(const ProcessReport& process, const RegionReport& region) {
  return printable(region.name) + mark(process);
}

std::vector<std::string> site_labels(const RegionReport& region, std::size_t width) {
  struct Named {
    std::size_t sites = 0;
    std::unordered_map<std::string, std::size_t> parts;  ///< of their keys: how often each is there
  };
  std::unordered_map<std::string_view, Named> by_name;
  for (const SiteReport& site : region.sites) {
    Named& named = by_name[site.name];
    ++named.sites;
    for (std::string& part : words_of(site.key)) ++named.parts[std::move(part)];
  }
  std::vector<std::string> labels;
  for (const SiteReport& site : region.sites) {
    const Named& named = by_name[site.name];
    std::string label = site.name;
    for (const std::string& part : words_of(site.key))
      if (named.parts.at(part) < named.sites) label += " " + part;
    labels.push_back(shortened(printable(label), std::max<std::size_t>(width, 20)));
  }
  return labels;
}

std::string config_text(const SiteReport& site, std::uint32_t config) {
  const auto found = site.configs.find(config);
  if (found != site.configs.end() && !found->second.empty()) return printable(found->second);
  if (config > 0) return "config-" + std::to_string(config);
  return site.default_choice.empty() ? "as launched" : printable(site.default_choice);
}

std::string sites_text(const RegionReport& region, std::size_t width, Detail detail) {
  if (is_found(region)) return {};  // its one site is told in words
  std::map<std::pair<std::string_view, std::string_view>, const log::LeftOutReport*> left_out;
  for (const log::LeftOutReport& one : region.left_out) left_out[{one.site, one.key}] = &one;
  const std::size_t few = region.sites.size() <= most_sites_with_rows ? few_rows : 1;
  ConfigTable table(width, detail == Detail::Few ? few : std::numeric_limits<std::size_t>::max());
  const std::vector<std::string> labels = site_labels(region, width / 4);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const SiteReport& site = region.sites[i];
    const auto own = left_out.find({site.name, site.key});
    table.add(site, labels[i], own == left_out.end() ? nullptr : own->second);
  }
  return table.to_string("    ");
}

std::vector<std::string> regions_never_entered(const ProcessReport& process) {
  std::vector<std::string> missing;
  std::string_view rest = process.asked_regions;
  while (!rest.empty()) {
    const std::string asked(take_until(rest, ';'));
    const bool said = std::ranges::any_of(process.fallbacks, [&](const log::FallbackReport& f) {
      return f.reason == "region_never_entered" &&
             (f.region == asked || f.region.empty() || asked == "nvtx:" + f.region);
    });
    const bool seen = std::ranges::any_of(process.regions, [&](const RegionReport& region) {
      return region.name == asked || "nvtx:" + region.name == asked;
    });
    if (asked.starts_with("nvtx:") && !said && !seen) missing.push_back(asked);
  }
  return missing;
}

std::string region_lines(const ProcessReport& process, const RegionModes& modes,
                         const RegionReport& region) {
  std::string text = "\n  region " + region_title(process, region);
  if (is_found(region)) {
    return text + (region.found.empty() ? "" : ": " + printable(region.found)) + "\n" +
           submission_lines(process, region);
  }
  text += "\n";
  const auto stored =
      static_cast<std::uint64_t>(std::ranges::count_if(region.sites, [](const SiteReport& site) {
        return site.winner && site.winner->reason == "stored";
      }));
  if (stored > 0)
    text += "    started with the winners that are stored for " +
            count_text(stored, "site", "sites") + ", with the times of the run that found them\n";
  // A comparison of this run takes its place, and sites that are compared alone have no region
  // time.
  const bool is_outdone = std::ranges::any_of(region.confirms, [](const ConfirmReport& confirm) {
    return confirm.pairs > 0 || !confirm.site.empty();
  });
  if (stored > 0 && region.stored_confirm && !is_outdone)
    text += confirm_line(process, *region.stored_confirm, "stored: ");
  std::string last;
  for (const ConfirmReport& confirm : region.confirms) {
    if (stored > 0 && confirm.verdict == "skipped") continue;
    const std::string line = confirm_line(process, confirm);
    if (line != last) text += line;  // generations that were not compared say the same
    last = line;
  }
  const RegionMode mode = modes.of(region);
  return text + mode_line(process, mode, region) + cost_line(process, mode, region);
}

std::string troubles(const ProcessReport& process, Detail detail) {
  std::string text;
  for (const std::string& fault : process.faults)
    text += "    " + in_tone(Tone::Warning, in_lines(fault)) + "\n";
  const int most_of_a_reason = detail == Detail::Few ? 4 : std::numeric_limits<int>::max();
  std::map<std::string, int> shown;
  const auto told = told_above(process);
  for (const log::FallbackReport& fallback : process.fallbacks) {
    if (told.contains(&fallback)) continue;
    if (++shown[fallback.reason] > most_of_a_reason) continue;
    text += "    " + in_tone(Tone::Warning, printable(fallback.reason));
    if (!fallback.region.empty()) text += ", " + printable(fallback.region);
    if (!fallback.site.empty()) text += ", " + printable(fallback.site);
    text += times_text(fallback) + ": " + in_lines(fallback.text) + "\n";
  }
  for (const auto& [reason, count] : shown) {
    if (count <= most_of_a_reason) continue;
    text += "    " + printable(reason) + ": " + std::to_string(count - most_of_a_reason) +
            " more; `contextune logs` lists them\n";
  }
  for (const std::string& name : regions_never_entered(process)) {
    text +=
        "    " + in_tone(Tone::Warning, "region " + printable(name) + " was never entered") + "\n";
  }
  return text.empty()
             ? text
             : "\n  not tuned, or not as asked (`contextune reasons REASON` says what to do)\n" +
                   text;
}

std::string process_summary(const ProcessReport& process, std::size_t width, Detail detail) {
  std::string text = heading(process);
  const RegionModes modes(process);
  for (const RegionReport& region : process.regions)
    text += region_lines(process, modes, region) + sites_text(region, width, detail);
  text += troubles(process, detail);
  if (process.launches_outside.value_or(0) > 0) {
    text += "\n  " + count_text(*process.launches_outside, "launch", "launches") +
            " outside every region\n";
  }
  return text;
}

std::string kernel_list(const ProcessReport& process, std::size_t width) {
  std::string text;
  for (const RegionReport& region : process.regions) {
    text += discovered_text(process, region);
    if (region.kernels.empty()) continue;
    std::vector<KernelReport> kernels = region.kernels;
    const auto seconds = [](const KernelReport& k) {
      return std::isfinite(k.seconds) ? k.seconds : 0;
    };
    std::ranges::stable_sort(kernels,
                             [&](const auto& a, const auto& b) { return seconds(a) > seconds(b); });
    double total = 0;
    for (const KernelReport& kernel : kernels) total += seconds(kernel);
    TextTable table({0, 1, 2, 5, 6});
    table.add({"share", "time", "launches", "grid", "block", "registers", "shared", "kernel",
               "parameters"});
    for (const KernelReport& kernel : kernels) {
      table.add({percent_text(total > 0 ? seconds(kernel) / total : log::not_known),
                 time_text(kernel.seconds), std::to_string(kernel.launches), printable(kernel.grid),
                 printable(kernel.block), std::to_string(kernel.registers),
                 std::to_string(kernel.shared_bytes),
                 shortened(printable(kernel.name), std::max<std::size_t>(width / 3, 30)),
                 shortened(printable(kernel.params), 40)});
    }
    text += "contextune: kernels of region " + region_title(process, region) + "\n" +
            table.to_string("  ");
  }
  return text;
}

}  // namespace contextune::cli
