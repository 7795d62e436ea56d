// The verdict of every region: how much less time, with which confidence.

const verdictWords = {
  kept: ["KEPT", "the winners are kept"],
  reduced: ["KEPT IN PART", "some of the winners are kept"],
  defaults: ["DEFAULTS STAND", "not shown to be faster: the defaults are kept"],
  skipped: ["NOT COMPARED", "not compared with the defaults"],
};

/// What decides of a region: its last comparison, of this run if there is one.
function verdictsOf(region) {
  const own = region.raw.confirms.filter((one) => !one.stored);
  const compared = own.filter((one) => one.pairs > 0);
  if (compared.length) return lastOfEachRank(compared);
  const stored = region.raw.confirms.filter((one) => one.stored && one.pairs > 0);
  if (stored.length) return lastOfEachRank(stored);
  return lastOfEachRank(own);
}

// A site that is compared alone has a verdict of its own.
function lastOfEachRank(confirms) {
  const last = new Map();
  for (const one of confirms) for (const rank of one.ranks) last.set(one.site + " " + rank, one);
  return [...new Set(last.values())];
}

/// The higher end of what is known of a gain lies as far above it, in logarithms of the ratio.
const upperGain = (gain, bound) => 1 - Math.pow(1 - gain, 2) / (1 - bound);

function submissionText(launches) {
  const parts = [];
  if (/\bchained\b/.test(launches)) parts.push("chained");
  const gathered = /gathered=(\d+)/.exec(launches);
  if (gathered) parts.push("gathered by " + gathered[1]);
  return parts.length ? parts.join(", ") : launches;
}

const submissionStates = {
  open: ["NOT SETTLED", "not settled yet: the next run goes on from here"],
  pinned: ["PINNED", "as --force says"],
  turns: ["IN TURNS", "in turns with as written, as --force says"],
  nothing: ["AS WRITTEN", "nothing repeats, so launches go out as written"],
  nccl: ["AS WRITTEN", "most launches are NCCL's, so they go out as written"],
  fatal: ["AS WRITTEN", "an earlier run did not come to its end otherwise"],
};

function gainChart(confirm, width) {
  const unit = rem();
  const height = 3.6 * unit;
  const upper = upperGain(confirm.gain, confirm.bound);
  const [low, high] = widened([0, confirm.bound, confirm.gain, upper].filter(isKnown), 0.08);
  const x = linear(low, high, unit, width - unit);
  const y = 1.1 * unit;
  const bottom = 2 * unit;
  const label = `${percentText(confirm.gain)} less time, 95 % bound ${percentText(confirm.bound)}`;
  return chart(width, height, label,
    axisX(x, percentLabels, bottom, 0.3 * unit),
    draw("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: bottom }),
    draw("line", { class: "mark-line", x1: x(confirm.bound), x2: x(upper), y1: y, y2: y }),
    draw("line", { class: "mark-line", x1: x(confirm.bound), x2: x(confirm.bound), y1: y - 0.45 * unit, y2: y + 0.45 * unit }),
    draw("circle", { class: "mark", cx: x(confirm.gain), cy: y, r: 0.32 * unit }));
}

function confirmFigure(region, confirm) {
  const [word, sentence] = verdictWords[textAt(confirm.verdict)] || [textAt(confirm.verdict).toUpperCase(), textAt(confirm.verdict)];
  const kept = /^(kept|reduced)$/.test(textAt(confirm.verdict));
  const tag = make("span", { class: kept ? "tag good" : "tag" }, word);
  const more = make("p", { class: "muted" }, confirm.stored ? "stored by an earlier run: " : "", sentence,
    confirm.pairs > 0 && `; ${countText(confirm.pairs, "pair", "pairs")}`);
  if (!isKnown(confirm.gain)) return { left: [make("p", {}, tag, " ", simulatedTag(region.job)), more], right: null };
  const least = confirm.bound > 0
    ? `with 95 % confidence at least ${percentText(confirm.bound)}`
    : `its 95 % bound, ${percentText(confirm.bound)}, is not above zero`;
  return {
    left: [
      make("p", { class: "figure" }, percentText(Math.abs(confirm.gain)), make("small", {}, confirm.gain >= 0 ? " less time" : " more time")),
      make("p", {}, least),
      make("p", {}, tag, " ", simulatedTag(region.job)),
    ],
    right: [
      responsive((width) => gainChart(confirm, Math.min(width, 40 * rem()))),
      isKnown(confirm.before) && make("p", {},
        `${timeText(confirm.before)} with the default${confirm.site ? "" : "s"}, `,
        `${timeText(isKnown(confirm.gain) ? confirm.before * (1 - confirm.gain) : confirm.after)} with the winner${confirm.site ? "" : "s"}`),
      more,
    ],
  };
}

/// Where each rank tuned by itself: a line a rank, from its bound to its gain.
function rankGainsChart(verdicts, ranks, width) {
  const unit = rem();
  const rows = verdicts.flatMap((one) => one.ranks.map((rank) => ({ rank: ranks[rank], one }))).sort((a, b) => a.rank - b.rank);
  const row = Math.max(3, Math.min(1.2 * unit, (32 * unit) / rows.length));
  const left = 3.5 * unit;
  const bottom = row * rows.length + 0.2 * unit;
  const [low, high] = widened([0, ...rows.flatMap(({ one }) => [one.bound, one.gain])].filter(isKnown), 0.05);
  const x = linear(low, high, left, width - 2 * unit);
  const every = Math.ceil((1.1 * unit) / row);
  return chart(width, bottom + 1.6 * unit, `Gains of ${countText(rows.length, "rank", "ranks")} with their bounds`,
    axisX(x, percentLabels, bottom, 0),
    draw("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: bottom }),
    rows.map(({ rank, one }, i) => {
      const y = (i + 0.5) * row;
      const kept = /^(kept|reduced)$/.test(textAt(one.verdict));
      return [
        i % every === 0 && draw("text", { x: left - 0.6 * unit, y: y + 0.3 * unit, "text-anchor": "end" }, rank),
        isKnown(one.gain) && withHover(draw("g", {},
          draw("line", { class: kept ? "mark-line" : "other-line", x1: x(one.bound), x2: x(one.gain), y1: y, y2: y }),
          draw("circle", { class: kept ? "mark" : "other", cx: x(one.gain), cy: y, r: Math.min(0.25 * unit, row / 2) })),
          () => `rank ${rank}: ${lessText(one.gain)} time, 95 % bound ${percentText(one.bound)}\n${(verdictWords[textAt(one.verdict)] || ["", ""])[1]}`),
      ];
    }));
}

function figureOfRanks(region, verdicts) {
  const { job } = region;
  const counts = new Map();
  for (const one of verdicts) counts.set(textAt(one.verdict), (counts.get(textAt(one.verdict)) || 0) + one.ranks.length);
  // Where the defaults stand, nothing is won or lost.
  const kept = verdicts.filter((one) => /^(kept|reduced)$/.test(textAt(one.verdict)));
  const told = kept.length ? kept : verdicts;
  const gains = told.map((one) => one.gain).filter(isKnown);
  const bounds = told.map((one) => one.bound).filter(isKnown);
  return {
    left: [
      gains.length > 0 && make("p", { class: "figure" }, percentText(smallest(gains)), make("small", {}, " to "), percentText(largest(gains)), make("small", {}, " less time")),
      bounds.length > 0 && make("p", {}, `${kept.length ? "where winners are kept; " : ""}the least 95 % bound is ${percentText(smallest(bounds))}`),
      make("p", {}, [...counts].map(([verdict, count]) => [
        make("span", { class: /^(kept|reduced)$/.test(verdict) ? "tag good" : "tag" }, (verdictWords[verdict] || [verdict.toUpperCase()])[0]),
        ` on ${countText(count, "rank", "ranks")} `]), simulatedTag(job)),
    ],
    right: gains.length > 0 && responsive((width) => rankGainsChart(verdicts, job.ranks, Math.min(width, 60 * rem()))),
  };
}

function openFigure(region) {
  const submission = region.raw.submissions[0];
  if (submission) {
    const [word, sentence] = submissionStates[textAt(submission.state)] || ["AS WRITTEN", "nothing else was shown to be faster"];
    const run = textAt(submission.state) === "open" ? ` (run ${submission.run} of at most ${submission.most_runs})` : "";
    return [make("p", {}, make("span", { class: "tag" }, word), " ", simulatedTag(region.job)),
      make("p", {}, sentence + run + (textAt(submission.state) === "open" ? "; launches go out " + submissionText(textAt(submission.launches)) + " so far" : ""))];
  }
  const stage = region.raw.ranks.filter(Boolean).map((rank) => textAt(rank.stage)).find(Boolean);
  // A process that ends says how many launches were outside every region.
  if (isLive && region.job.raw.ranks.some((rank) => rank.outside === undefined))
    return [make("p", {}, make("span", { class: "tag" }, "UNDER WAY"), " ", simulatedTag(region.job)),
      make("p", {}, stage && stage !== "finished" ? `the tuning is in stage ${stage}` : "nothing has been compared with the defaults yet")];
  return [make("p", {}, make("span", { class: "tag" }, "NOT COMPARED"), " ", simulatedTag(region.job)),
    make("p", {}, stage && stage !== "finished" ? `the tuning ended in stage ${stage}` : "nothing was compared with the defaults")];
}

function showVerdict(holder, state) {
  const list = make("div", { class: "verdicts" });
  for (const region of state.job.regions) {
    const verdicts = verdictsOf(region);
    const words = region.raw.words.map((one) => make("div", {},
      region.raw.words.length > 1 && make("h4", {}, ranksText(one.ranks.map((rank) => state.job.ranks[rank]))),
      make("p", { class: "words" }, one.text.replace(/^ +/gm, "").trim())));
    const add = (title, left, right, rest) => list.append(make("article", { class: "verdict" },
      make("div", {}, make("h3", {}, title), left), make("div", {}, right, rest)));
    const inWords = make("details", {}, make("summary", {}, "In words"), words);
    if (!verdicts.length) add(nameOf(region.name, 60), openFigure(region), null, inWords);
    if (verdicts.length > 3 && verdicts.every((one) => one.site === verdicts[0].site)) {
      const { left, right } = figureOfRanks(region, verdicts);
      add([nameOf(region.name, 60), " of ranks that tuned alone"], left, right, inWords);
      continue;
    }
    verdicts.forEach((confirm, i) => {
      const { left, right } = confirmFigure(region, confirm);
      const title = [nameOf(region.name, 60), confirm.site ? [" ", nameOf(textAt(confirm.site), 40)] : null,
        verdicts.length > 1 && confirm.ranks.length < state.job.ranks.length
          ? make("span", { class: "muted" }, " " + ranksText(confirm.ranks.map((rank) => state.job.ranks[rank]))) : null];
      add(title, left, right, i === 0 ? inWords : null);
    });
  }
  if (!state.job.regions.length) list.append(make("p", {}, "No region was entered. The last section says what was not tuned."));
  holder.append(list);
}
