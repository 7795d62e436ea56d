// Sites of a region, and the configs of one of them by time.

const reasonWords = {
  fastest: "lowest time in the table",
  margin: "nothing beat the default by more than the noise",
  only: "its only config",
  pinned: "pinned by --force",
  region: "by the time of the region",
  failed: "no other config could run",
  no_samples: "not measured, or too seldom",
  dropped: "the region was not shown to be faster with another",
  stored: "stored by an earlier run",
  nearest: "of the nearest size that was measured",
  so_far: "best so far of a tuning that did not end",
};

const gainCell = (gain) => lessText(gain);

/// All medians of a site on one line: the default and the winner stand out.
function siteStrip(site) {
  const unit = rem();
  const width = 11 * unit;
  const height = 1.1 * unit;
  const times = site.byTime.map((place) => site.quantiles(place)[2]).filter(isKnown);
  if (!times.length) return null;
  const x = linear(times[0], times[times.length - 1], 0.4 * unit, width - 0.4 * unit);
  const line = (time) => `M${x(time).toFixed(1)} ${(0.3 * unit).toFixed(1)}V${(0.8 * unit).toFixed(1)}`;
  const svg = draw("svg", { width, height, "aria-hidden": "true" },
    draw("path", { class: "other-line", d: times.map(line).join("") }),
    isKnown(site.medianOf(0)) && draw("path", { class: "default-line", d: `M${x(site.medianOf(0))} 0V${height}` }),
    isKnown(site.medianOf(site.winner)) && draw("circle", { class: "mark", cx: x(site.medianOf(site.winner)), cy: height / 2, r: 0.27 * unit }));
  return withHover(svg, () => `${countText(times.length, "config", "configs")} measured: ${timeText(times[0])} to ${timeText(times[times.length - 1])}` +
    `\ndefault ${timeText(site.medianOf(0))}, winner ${timeText(site.medianOf(site.winner))}`);
}

const siteLegend = () => {
  const unit = rem();
  const icon = (...parts) => draw("svg", { width: 1.2 * unit, height: unit, "aria-hidden": "true" }, ...parts);
  return make("p", { class: "legend" },
    make("span", {}, icon(draw("circle", { class: "mark", cx: 0.6 * unit, cy: 0.55 * unit, r: 0.27 * unit })), "winner"),
    make("span", {}, icon(draw("path", { class: "default-line", d: `M${0.6 * unit} 0V${unit}` })), "default"),
    make("span", {}, icon(draw("path", { class: "other-line", d: `M${0.6 * unit} ${0.2 * unit}V${0.8 * unit}` })), "other configs"));
};

function showSites(holder, state) {
  const region = state.region;
  if (!region || !region.sites.length) {
    holder.append(make("p", { class: "muted" }, "The region has no site with configs."));
    return;
  }
  const several = state.job.ranks.length > 1;
  const list = sortedTable({
    id: "site-table",
    caption: several ? "Times are those of the slowest rank" : "Times are medians of the samples",
    label: "Sites",
    searchLabel: "Search sites",
    rows: region.sites,
    rowClass: (site) => (site.place === state.site ? "chosen" : null),
    columns: [
      { label: "site", head: true, value: (site) => site.label, search: (site) => site.name + " " + site.key + " " + site.provider + " " + site.text(site.winner),
        cell: (site) => {
          const button = make("button", { type: "button", class: "link", title: site.name + (site.key ? "\n" + site.key : "") }, nameOf(site.label, 44));
          button.addEventListener("click", () => state.choose({ site: site.place }, "site"));
          return button;
        } },
      { label: "configs", number: true, down: true, value: (site) => site.raw.declared || site.configs.length },
      { label: "default", number: true, down: true, value: (site) => site.defaultTime, cell: (site) => timeText(site.defaultTime) },
      { label: "winner", number: true, down: true, value: (site) => site.winnerTime, cell: (site) => timeText(site.winnerTime) },
      { label: "than the default", number: true, down: true, value: (site) => site.gain, cell: (site) => (site.winner > 0 ? gainCell(site.gain) : "-") },
      { label: "all configs", class: "drawn", cell: siteStrip },
      { label: "winning config", value: (site) => (site.winner < 0 ? "undecided" : site.text(site.winner)),
        cell: (site) => site.winner < 0 ? make("span", { class: "muted" }, "undecided")
          : [make("span", { class: site.winner === 0 ? "muted" : null }, site.winner === 0 ? "default: " : ""), nameOf(site.text(site.winner) || "config-" + site.winner, 44)] },
      { label: "why", value: (site) => site.reason, class: "text", cell: (site) => [reasonWords[site.reason] || site.reason || "-",
        site.others.length > 0 && make("span", { class: "muted" }, "; another on " + ranksText(site.others.map((rank) => state.job.ranks[rank])))] },
    ],
  });
  const detail = make("div", { id: "site" });
  holder.append(siteLegend(), make("div", { class: "beside" }, list.element, detail));
  state.onSite = () => {
    list.show();
    detail.replaceChildren();
    fill(detail, [siteDetail(region.sites[state.site] || region.sites[0], state, detail.clientWidth)]);
  };
  state.onSite();
}

function spreadAxis(site, places) {
  const values = places.flatMap((place) => Array.from(site.quantiles(place))).filter(isKnown);
  return values.length ? widened(values, 0.03) : [0, 1];
}

/// Samples of one config: a line over all, a box over the middle half, a stroke at the median.
function spreadCell(site, place, x, width) {
  const unit = rem();
  const height = 1.3 * unit;
  const [least, low, median, high, most] = site.quantiles(place);
  if (!isKnown(median)) return null;
  const config = site.configs[place];
  const isWinner = config === site.winner;
  const y = height / 2;
  const samples = site.samples(place);
  const byDefault = site.medianOf(0);
  const parts = [isKnown(byDefault) && draw("path", { class: "default-line", d: `M${x(byDefault)} 0V${height}` })];
  if (isKnown(least)) {
    parts.push(draw("line", { class: isWinner ? "mark-line" : "other-line", "stroke-width": 1, x1: x(least), x2: x(most), y1: y, y2: y }));
    parts.push(draw("rect", { class: isWinner ? "mark" : "other", "fill-opacity": 0.35, x: x(low), width: Math.max(1, x(high) - x(low)), y: y - 0.3 * unit, height: 0.6 * unit }));
  }
  if (samples && samples.length <= 64)
    parts.push(draw("path", { class: isWinner ? "mark-line" : "other-line", "stroke-width": 1, d: Array.from(samples, (one) => `M${x(one).toFixed(1)} ${y - 0.18 * unit}V${y + 0.18 * unit}`).join("") }));
  parts.push(draw("circle", { class: isWinner ? "mark" : "strong", cx: x(median), cy: y, r: 0.24 * unit }));
  return withHover(draw("svg", { width, height, "aria-hidden": "true" }, ...parts), () =>
    `config-${config} ${site.text(config)}\nmedian ${timeText(median)}` + (isKnown(least)
      ? `\nfrom ${timeText(least)} to ${timeText(most)}, middle half ${timeText(low)} to ${timeText(high)}\n${countText(site.count(place), "sample", "samples")}` : ""));
}

function siteDetail(site, state, room) {
  const unit = rem();
  const places = site.byTime;
  const [low, high] = spreadAxis(site, places);
  // Other columns take about so much.
  const others = (38 + 4.5 * site.parameters.length) * unit;
  const width = Math.max(16 * unit, Math.min(64 * unit, room - others));
  const x = linear(low, high, 0.6 * unit, width - 1.2 * unit);
  const byDefault = site.medianOf(0);
  const isMeasured = places.some((place) => isKnown(site.quantiles(place)[2]));
  const several = state.job.ranks.length > 1;
  const spread = (place) => {
    const [least, , median, , most] = site.quantiles(place);
    return (most - least) / median;
  };
  const facts = [
    site.provider && site.provider !== "none" && ["tuned as", site.provider], site.key && ["key", nameOf(site.key, 120)],
    isMeasured && textAt(site.raw.grid) && ["grid", textAt(site.raw.grid)], isMeasured && textAt(site.raw.block) && ["block", textAt(site.raw.block)],
    textAt(site.raw.common) && ["the same in all configs", textAt(site.raw.common)],
    site.raw.declared > site.configs.length && ["configs not tried", grouped(site.raw.declared - site.configs.length)],
  ].filter(Boolean);
  const table = sortedTable({
    id: "config-table",
    caption: isMeasured ? "Configs by time, the fastest first" : "Configs; none was measured by itself",
    label: "Configs of " + site.label,
    searchLabel: "Search configs",
    pageSize: 60,
    rows: places,
    rowClass: (place) => (site.configs[place] === site.winner ? "winner" : site.configs[place] === 0 ? "default" : isKnown(site.quantiles(place)[2]) ? null : "loser"),
    columns: [
      { label: "config", head: true, value: (place) => site.configs[place], search: (place) => "config-" + site.configs[place], cell: (place) => ["config-" + site.configs[place],
        site.configs[place] === site.winner && [" ", make("span", { class: "tag good" }, "winner")],
        site.configs[place] === 0 && [" ", make("span", { class: "tag" }, "default")]] },
      ...site.parameters.map((name, i) => ({
        label: shortened(name, 24),
        number: places.every((place) => /^-?[0-9.]*$/.test(site.value(i, place))),
        value: (place) => {
          const value = site.value(i, place);
          return value !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
        },
        cell: (place) => (site.value(i, place) === "" ? "" : nameOf(site.value(i, place), 28)),
      })),
      isMeasured && { label: "median", number: true, value: (place) => site.quantiles(place)[2], cell: (place) => timeText(site.quantiles(place)[2]) },
      isMeasured && { label: "than the default", number: true, down: true, value: (place) => 1 - site.quantiles(place)[2] / byDefault,
        cell: (place) => (site.configs[place] === 0 ? "-" : lessText(1 - site.quantiles(place)[2] / byDefault)) },
      isMeasured && { label: "samples drawn", class: "drawn", cell: (place) => spreadCell(site, place, x, width) },
      isMeasured && { label: "spread", number: true, value: spread, cell: (place) => percentText(spread(place)) },
      isMeasured && { label: "samples", number: true, value: (place) => site.count(place) },
      isMeasured && places.some((place) => site.status(place)) && { label: "note", value: (place) => site.status(place) },
    ].filter(Boolean),
  });
  const ticks = axisX(x, timeLabels, 0.2 * unit, 0, 6 * unit);
  if (isMeasured)
    table.table.querySelector("thead tr").children[site.parameters.length + 3].append(
      draw("svg", { width, height: 1.5 * unit, "aria-hidden": "true" }, ticks));
  const link = copyButton("Copy name", site.name + (site.key ? " " + site.key : ""));
  return [
    make("h3", {}, "Configs of ", nameOf(site.label, 60), " ", simulatedTag(state.job), " ", link),
    make("dl", { class: "facts" }, facts.map(([label, text]) => [make("dt", {}, label), make("dd", {}, text)])),
    isMeasured && make("p", { class: "muted" }, `A dot is the median, the box the middle half of the samples${several ? " of all ranks" : ""}, the line all of them; the dashed line is the default's median.`),
    table.element,
  ];
}
