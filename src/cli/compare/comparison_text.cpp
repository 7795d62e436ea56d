#include "cli/compare/comparison_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cli/report/summary.hpp"
#include "cli/words/colour.hpp"
#include "cli/words/text.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

using log::printable;

constexpr std::array<Word, 4> all_words{Word::Same, Word::Faster, Word::Slower, Word::Unclear};
/// Hostile names are shortened; a line that is not of a table may take so much of them.
constexpr std::size_t most_of_a_name = 80;

std::string shown_name(const std::string& name) {
  return shortened(printable(name), most_of_a_name);
}

std::string word_text(Word word) {
  const std::string text(to_string(word));
  switch (word) {
    case Word::Faster:
      return in_tone(Tone::Good, text);
    case Word::Slower:
      return in_tone(Tone::Bad, text);
    case Word::Unclear:
      return in_tone(Tone::Warning, text);
    case Word::Same:
      break;
  }
  return text;
}

// "+1.2 %" of a ratio of 1.012.
std::string signed_percent(double ratio) {
  const double percent = (ratio - 1) * 100;
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), std::abs(percent) < 99.95 ? "%+.1f %%" : "%+.0f %%",
                      percent);
  return text.data();
}

std::string interval_text(const Change& change) {
  if (!std::isfinite(change.ratio)) return "-";
  if (!std::isfinite(change.high)) return signed_percent(change.ratio);
  return signed_percent(change.low) + " to " + signed_percent(change.high);
}

std::string joined_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i == 0 ? "" : ", ") + shown_name(names[i]);
  return names.size() > most ? text + ", ..." : text;
}

std::string kind_of(const ComparedSide& side) {
  if (!side.simulated) return "REAL";
  return side.is_real ? "SIMULATED IN PARTS" : "SIMULATED";
}

std::string first_line(const SideComparison& comparison, const ComparedSide& a,
                       const ComparedSide& b) {
  std::string text = "contextune compare: " + shown_name(a.where) + " and " + shown_name(b.where);
  if (comparison.is_simulated_and_real)
    text += ", " + in_tone(Tone::Warning, "A IS " + kind_of(a) + ", B IS " + kind_of(b));
  if (comparison.has_other_gpu) text += ", " + in_tone(Tone::Warning, "DIFFERENT GPUS");
  if (comparison.is_same_run) text += ", " + in_tone(Tone::Warning, "THE SAME RUN TWICE");
  return text + "\n";
}

std::string side_line(const char* letter, const ComparedSide& side) {
  std::string text = std::string("  ") + letter + "  " + shown_name(side.where);
  if (!side.runs.empty())
    text += (side.runs.size() == 1 ? ", run " : ", runs ") + joined_names(side.runs);
  if (!side.time.empty()) text += ", " + printable(side.time);
  if (side.num_ranks > 1) text += ", " + std::to_string(side.num_ranks) + " ranks";
  for (const char* name : {"program", "GPU"})
    if (const std::string fact = side.fact(name); !fact.empty()) text += ", " + shown_name(fact);
  return text + (side.simulated ? " (simulated)\n" : "\n");
}

std::string heading(const SideComparison& comparison, const ComparedSide& a,
                    const ComparedSide& b) {
  std::string text = first_line(comparison, a, b) + side_line("A", a) + side_line("B", b);
  if (a.simulated && b.simulated) text += "  a simulated driver: no figure here is of a real GPU\n";
  std::string differing;
  for (const DifferingFact& fact : comparison.facts)
    differing += (differing.empty() ? "" : ", ") + fact.name + " (A " + shown_name(fact.a) +
                 ", B " + shown_name(fact.b) + ")";
  if (!differing.empty()) text += "  not alike: " + differing + "\n";
  return text;
}

std::string title_of_pair(const RegionPair& pair) {
  std::string text =
      (pair.a->kind.empty() ? "region" : pair.a->kind) + " " + shown_name(pair.a->name);
  if (pair.a->simulated || pair.b->simulated)
    text += pair.a->simulated && pair.b->simulated ? " (simulated)" : " (simulated and real)";
  if (pair.other_hardware) {
    text += pair.a->gpu == pair.b->gpu
                ? ", other hardware"
                : ", A on " + shown_name(pair.a->gpu) + ", B on " + shown_name(pair.b->gpu);
  }
  return text;
}

std::string value_or_none(const std::string& value) {
  return value.empty() ? "-" : printable(value);
}

// Only the parameters that differ, unless one of the two has none: "block 128 -> 256".
std::string winners_text(const SitePair& site) {
  const ComparedWinner& a = *site.a->winner;
  const ComparedWinner& b = *site.b->winner;
  if (a.parameters.empty() || b.parameters.empty() || site.differing.empty())
    return a.text + " -> " + b.text;
  std::string text;
  for (const DifferingParameter& one : site.differing)
    text += (text.empty() ? "" : ", ") + printable(one.name) + " " + value_or_none(one.a) + " -> " +
            value_or_none(one.b);
  return text;
}

std::string notes_of(const SitePair& site) {
  std::vector<std::string> notes;
  if (site.settled.word == Word::Unclear) notes.push_back(site.settled.why);
  if (site.by_default.word == Word::Unclear && site.by_default.why != site.settled.why)
    notes.push_back("default: " + site.by_default.why);
  if (site.winners_differ) notes.push_back("winners differ: " + winners_text(site));
  if (site.loosely) notes.push_back("other code");
  if (site.a->ranks_differ || site.b->ranks_differ) notes.push_back("ranks have other winners");
  std::string text;
  for (const std::string& note : notes) text += (text.empty() ? "" : "; ") + note;
  return text;
}

// Labels as in the tables of one run: of keys only the parts that tell sites of one name apart.
std::vector<std::string> labels_of(const RegionPair& pair, std::size_t width) {
  log::RegionReport named;
  for (const SitePair& site : pair.sites) {
    log::SiteReport& report = named.sites.emplace_back();
    report.name = site.a->name;
    report.key = site.a->key;
  }
  return site_labels(named, width);
}

std::string sites_table(const RegionPair& pair, std::size_t width) {
  if (pair.sites.empty()) return {};
  TextTable table({1, 2, 5, 6});
  table.add({"site", "settled A", "B", "change (95 %)", "", "default A", "B", "change (95 %)", ""});
  const std::vector<std::string> labels = labels_of(pair, width / 4);
  std::string text;
  for (std::size_t i = 0; i < pair.sites.size(); ++i) {
    const SitePair& site = pair.sites[i];
    table.add({labels[i], time_text(site.a->settled.median), time_text(site.b->settled.median),
               interval_text(site.settled), word_text(site.settled.word),
               time_text(site.a->by_default.median), time_text(site.b->by_default.median),
               interval_text(site.by_default), word_text(site.by_default.word)});
  }
  // Notes stand in lines of their own: they are too long for a column.
  const std::string rows = table.to_string("    ");
  std::size_t begin = rows.find('\n') + 1;
  text = rows.substr(0, begin);
  for (const SitePair& site : pair.sites) {
    const std::size_t end = rows.find('\n', begin) + 1;
    text += rows.substr(begin, end - begin);
    begin = end;
    if (const std::string notes = notes_of(site); !notes.empty())
      text += "      " + shortened(notes, std::max<std::size_t>(width, 40) * 2) + "\n";
  }
  return text;
}

std::string gain_text(const ComparedGain& gain, const std::optional<ComparedLaunches>& launches) {
  std::string text;
  if (launches) {
    text = printable(launches->launches);
    if (!launches->state.empty()) text += ", " + printable(launches->state);
  } else {
    text = printable(gain.verdict);
  }
  const MeasuredGain& figures = gain.figures;
  if (figures.is_none) return text.empty() ? "nothing is gained" : text + ", nothing is gained";
  if (!figures.lacking.empty()) return text + (text.empty() ? "" : ", ") + figures.lacking;
  return text + (text.empty() ? "" : ", ") + percent_text(std::abs(figures.gain)) +
         (figures.gain < 0 ? " more" : " less") + " time (at least " + percent_text(figures.bound) +
         ", " + count_text(figures.pairs, "pair", "pairs") + ")";
}

std::string gains_text(const RegionPair& pair) {
  std::string text;
  for (const GainPair& gain : pair.gains) {
    const std::string of = gain.a->site.empty() ? "" : " of " + shown_name(gain.a->site);
    text += "    " + word_text(gain.change.word) + " gain" + of + ": A " +
            gain_text(*gain.a, pair.a->launches) + "; B " + gain_text(*gain.b, pair.b->launches);
    if (gain.change.word != Word::Unclear || std::isfinite(gain.change.high))
      text += "; time left " + interval_text(gain.change);
    const bool is_said = !gain.a->figures.lacking.empty() || !gain.b->figures.lacking.empty();
    if (gain.change.word == Word::Unclear && !is_said) text += "; " + gain.change.why;
    text += "\n";
  }
  if (pair.a->launches && pair.b->launches &&
      pair.a->launches->launches != pair.b->launches->launches)
    text += "      launches differ: " + printable(pair.a->launches->launches) + " -> " +
            printable(pair.b->launches->launches) + "\n";
  return text;
}

std::string region_text(const RegionPair& pair, std::size_t width) {
  std::string text =
      "\n  " + title_of_pair(pair) + "\n" + sites_table(pair, width) + gains_text(pair);
  const auto tell = [&](const char* side, const std::vector<const ComparedSite*>& sites) {
    for (const ComparedSite* site : sites)
      text += std::string("    only in ") + side + ": " + shown_name(site->name) +
              (site->key.empty() ? "" : " " + shown_name(site->key)) + "\n";
  };
  tell("A", pair.only_in_a);
  tell("B", pair.only_in_b);
  return text;
}

std::string only_text(const char* side, const std::vector<const ComparedRegion*>& regions) {
  std::string text;
  for (const ComparedRegion* region : regions)
    text += std::string("\n  only in ") + side + ": " + region->kind + " " +
            shown_name(region->name) +
            (region->gpu.empty() ? "" : " on " + shown_name(region->gpu)) + ", " +
            count_text(region->sites.size(), "site", "sites") + "\n";
  return text;
}

std::string counts_text(const WordCounts& counts) {
  std::string text;
  for (const Word word : all_words) {
    if (counts.of(word) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(counts.of(word)) + " " + word_text(word);
  }
  return text.empty() ? "nothing" : text;
}

std::string summary_line(const SideComparison& comparison) {
  if (comparison.is_empty())
    return "\n" + in_tone(Tone::Warning, "nothing is in both: there is nothing to compare") + "\n";
  std::string text = "\nsettled times: " + counts_text(comparison.settled) +
                     "; default times: " + counts_text(comparison.defaults);
  if (comparison.gains.all() > 0) text += "; gains: " + counts_text(comparison.gains);
  std::size_t only_in_a = comparison.only_in_a.size();
  std::size_t only_in_b = comparison.only_in_b.size();
  for (const RegionPair& pair : comparison.regions) {
    only_in_a += pair.only_in_a.size();
    only_in_b += pair.only_in_b.size();
  }
  if (only_in_a > 0) text += "; " + std::to_string(only_in_a) + " only in A";
  if (only_in_b > 0) text += "; " + std::to_string(only_in_b) + " only in B";
  std::array<char, 32> margin{};
  (void)std::snprintf(margin.data(), margin.size(), "%.3g", comparison.margin * 100);
  return text + " (B beside A, margin " + margin.data() + " %)\n";
}

}  // namespace

std::string side_comparison_text(const SideComparison& comparison, const ComparedSide& a,
                                 const ComparedSide& b, std::size_t width) {
  std::string text = heading(comparison, a, b);
  for (const RegionPair& pair : comparison.regions) text += region_text(pair, width);
  text += only_text("A", comparison.only_in_a) + only_text("B", comparison.only_in_b);
  return text + summary_line(comparison);
}

}  // namespace contextune::cli
