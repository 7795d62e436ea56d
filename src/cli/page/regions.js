// Regions: how each was found or marked, its share of the time, and how its launches reached the driver.

/// "12 % of the elapsed time" as a share, where the log says so.
const shareOf = (text) => {
  const found = /([0-9.]+) % of the elapsed time/.exec(text);
  return found ? Number(found[1]) / 100 : NaN;
};

const foundText = (region) => {
  const texts = region.raw.found.map((one) => textAt(one.text));
  return texts.slice(0, 3).join("\n") + (texts.length > 3 ? `\nand otherwise on ${countText(texts.length - 3, "rank", "ranks")}` : "");
};
const firstRank = (region) => region.raw.ranks.find(Boolean) || {};

function shareBar(share) {
  if (!isKnown(share)) return "-";
  const unit = rem();
  const width = 8 * unit;
  return make("span", {}, draw("svg", { class: "bar", width, height: 0.7 * unit, "aria-hidden": "true" },
    draw("rect", { class: "band", width, height: 0.7 * unit }),
    draw("rect", { class: "mark", width: Math.max(1, width * Math.min(1, share)), height: 0.7 * unit })), percentText(share, 0));
}

function showRegions(holder, state) {
  holder.append(sortedTable({
    id: "region-table",
    caption: "Regions, in the order in which they were entered" + (state.job.ranks.length > 1 ? "; figures are those of the first rank" : ""),
    rows: state.job.regions,
    columns: [
      { label: "region", head: true, value: (region) => region.name, cell: (region) => nameOf(region.name, 40) },
      { label: "marked or found", class: "text", value: (region) => foundText(region) || "marked" },
      { label: "share of the time", value: (region) => shareOf(foundText(region)), cell: (region) => shareBar(shareOf(foundText(region))) },
      { label: "tuned", value: (region) => textAt(firstRank(region).mode || 0),
        cell: (region) => textAt(firstRank(region).mode || 0) + (firstRank(region).why_live ? `, because ${textAt(firstRank(region).why_live)}` : "") || "-" },
      { label: "sites", number: true, value: (region) => region.sites.length },
      { label: "passes", number: true, value: (region) => firstRank(region).passes || 0, cell: (region) => (firstRank(region).passes ? grouped(firstRank(region).passes) : "-") },
      { label: "entries", number: true, value: (region) => firstRank(region).entries || 0,
        cell: (region) => (firstRank(region).entries ? grouped(firstRank(region).entries) : "-") },
      { label: "tuning", number: true, value: (region) => firstRank(region).tuning ?? NaN, cell: (region) => timeText(firstRank(region).tuning ?? NaN) },
      { label: "stage", value: (region) => textAt(firstRank(region).stage || 0), cell: (region) => textAt(firstRank(region).stage || 0) || "-" },
    ],
  }).element);
  for (const region of state.job.regions)
    fill(holder, [oneOrFew("Launches of", region.raw.submissions, (one) => ranksText(one.ranks.map((rank) => state.job.ranks[rank])),
      (submission) => submissionPart(region, submission, state))]);
  for (const region of state.job.regions) if (region.raw.kernels.length) holder.append(kernelPart(region));
  for (const region of state.job.regions) {
    if (region.raw.periods.length)
      holder.append(make("h3", {}, "What repeats"), make("ul", {}, region.raw.periods.map((one) => make("li", {}, textAt(one)))));
    if (region.raw.ranges)
      holder.append(make("h3", {}, "NVTX ranges, for --region nvtx:NAME"), make("p", { class: "mono" }, textAt(region.raw.ranges)));
  }
}

/// The ways that were screened: "chained 1.300, gathered=16 0.764", as shares of as written.
function screenedChart(ways, chosen, width) {
  const unit = rem();
  const row = 1.6 * unit;
  const left = Math.min(15 * unit, width * 0.45);
  const most = Math.max(1.05, ...ways.map((way) => way.ratio));
  const x = linear(0, most, left, width - 3.5 * unit);
  const bottom = row * ways.length;
  return chart(width, bottom + 1.6 * unit, "Time of each way to launch, as a share of as written",
    draw("line", { class: "zero", x1: x(1), x2: x(1), y1: 0, y2: bottom }),
    draw("text", { x: x(1), y: bottom + 1.1 * unit, "text-anchor": "middle" }, "as written"),
    ways.map((way, i) => [
      draw("text", { x: left - 0.6 * unit, y: i * row + 1.05 * unit, "text-anchor": "end", class: way.name === chosen ? "strong" : null }, submissionText(way.name)),
      draw("rect", { class: way.name === chosen ? "mark" : "other", x: left, y: i * row + 0.45 * unit, width: Math.max(1, x(way.ratio) - left), height: 0.7 * unit }),
      draw("text", { x: x(way.ratio) + 0.4 * unit, y: i * row + 1.05 * unit, class: way.name === chosen ? "strong" : null }, way.ratio.toFixed(3)),
    ]));
}

function submissionPart(region, submission, state) {
  const chosen = textAt(submission.launches);
  const ways = [...textAt(submission.screened).matchAll(/([^,]+?) ([0-9.]+)(?:,|$)/g)]
    .map((found) => ({ name: found[1].trim(), ratio: Number(found[2]) }))
    .filter((way) => isKnown(way.ratio)).sort((a, b) => a.ratio - b.ratio);
  const counts = [
    ["launches held back", submission.held], ["handed over together", submission.batches], ["handed over late", submission.late],
    ["chained in the stream", submission.chained], ["graphs built", submission.graphs], ["graph launches", submission.graph_launches],
    ["launches in them", submission.in_graphs], ["graphs of the program chained", submission.chained_graphs],
    ["launches in those", submission.chained_graph_launches], ["edges chained", submission.chained_edges],
    ["images given waits", submission.images], ["kernels in them", submission.kernels], ["images left alone", submission.images_left],
    ["images not needed here", submission.images_unneeded],
  ].filter(([, count]) => count > 0).map(([label, count]) => [label, grouped(count)]);
  if (submission.kept_bytes > 0) counts.push(["host memory kept", bytesText(submission.kept_bytes)]);
  if (submission.graph_bytes > 0) counts.push(["device memory taken by graphs", bytesText(submission.graph_bytes)]);
  if (submission.load > 0) counts.push(["spent at loads", timeText(submission.load)]);
  if (submission.ordinary) counts.push(["not chained, since it is faster so", textAt(submission.ordinary)]);
  if (submission.why) counts.push(["why", textAt(submission.why)]);
  return make("div", { class: "launches" },
    make("h3", {}, "Launches of ", nameOf(region.name, 40), ": ", submissionText(chosen) || "as written", " ", simulatedTag(region.job),
      submission.ranks.length < state.job.ranks.length && make("span", { class: "muted" }, " " + ranksText(submission.ranks.map((rank) => state.job.ranks[rank])))),
    ways.length > 0 && [make("p", { class: "muted" }, "Ways that were screened, by the time that blocks took as a share of as written; shorter is faster."),
      responsive((width) => screenedChart(ways, chosen, Math.min(width, 60 * rem())))],
    counts.length > 0 && make("dl", { class: "facts" }, counts.map(([label, text]) => [make("dt", {}, label), make("dd", {}, text)])));
}

function kernelPart(region) {
  return make("div", {}, make("h3", {}, "Kernels of ", nameOf(region.name, 40), " by time ", simulatedTag(region.job)),
    sortedTable({
      id: null,
      caption: "As --discover saw them",
      rows: region.raw.kernels,
      columns: [
        { label: "kernel", head: true, value: (kernel) => textAt(kernel[0]), cell: (kernel) => nameOf(textAt(kernel[0]), 60) },
        { label: "time", number: true, down: true, value: (kernel) => kernel[1] ?? NaN, cell: (kernel) => timeText(kernel[1] ?? NaN) },
        { label: "share", number: true, down: true, value: (kernel) => kernel[2] ?? NaN, cell: (kernel) => percentText(kernel[2] ?? NaN) },
        { label: "launches", number: true, down: true, value: (kernel) => kernel[3], cell: (kernel) => grouped(kernel[3]) },
        { label: "grid", value: (kernel) => textAt(kernel[4]) },
        { label: "block", value: (kernel) => textAt(kernel[5]) },
        { label: "registers", number: true, value: (kernel) => kernel[6] },
        { label: "shared", number: true, value: (kernel) => kernel[7], cell: (kernel) => bytesText(kernel[7]) },
        { label: "parameters", value: (kernel) => textAt(kernel[8]), cell: (kernel) => textAt(kernel[8]) && nameOf(textAt(kernel[8]), 40) },
      ],
    }).element);
}
