// Ranks side by side: who is slow, who waits, and how each rank takes each config.

/// Of each rank all sites together of which every rank has the same winner and knows its time.
function timesOfRanks(region, job) {
  const sums = job.ranks.map(() => ({ default: 0, winner: 0 }));
  let sites = 0;
  for (const site of region ? region.sites : []) {
    const complete = job.ranks.every((_, rank) => site.winnerByRank[rank] === site.winner && isKnown(site.winnerTimes[rank]) && isKnown(site.defaultTimes[rank]));
    if (!complete || site.winner < 0) continue;
    ++sites;
    job.ranks.forEach((_, rank) => {
      sums[rank].default += site.defaultTimes[rank];
      sums[rank].winner += site.winnerTimes[rank];
    });
  }
  return sites ? sums : job.ranks.map(() => ({ default: NaN, winner: NaN }));
}

function rankBar(value, most) {
  if (!isKnown(value)) return null;
  const unit = rem();
  return draw("svg", { width: 8 * unit, height: 0.7 * unit, "aria-hidden": "true" },
    draw("rect", { class: "other", width: Math.max(1, (8 * unit * value) / most), height: 0.7 * unit }));
}

function showRanks(holder, state) {
  const { job, region } = state;
  const times = timesOfRanks(region, job);
  const most = largest(times.map((time) => time.winner));
  const slowest = times.findIndex((time) => time.winner === most);
  const least = smallest(times.map((time) => time.winner));
  if (slowest >= 0)
    holder.append(make("p", {}, `Rank ${job.ranks[slowest]} is the slowest: ${timeText(most)} for all sites with the winners, `,
      `${percentText(most / least - 1)} more than the fastest. `, simulatedTag(job)));
  const differences = job.raw.differences.map(textAt);
  if (differences.length)
    holder.append(make("details", { open: differences.length <= 4 },
      make("summary", {}, `Ranks differ in ${countText(differences.length, "thing", "things")} in which they should not`),
      make("ul", { class: "words" }, differences.map((text) => make("li", {}, text)))));
  if (job.raw.missing) holder.append(make("p", {}, "The logs have " + textAt(job.raw.missing) + "."));
  const waits = job.raw.waits || [];
  const wait = (row, i) => (waits[row] ? waits[row][i] : NaN);
  const mostWait = largest(job.ranks.map((_, row) => wait(row, 2)));
  const timeColumns = [
    { label: "with the defaults", number: true, down: true, value: (row) => times[row].default, cell: (row) => timeText(times[row].default) },
    { label: "with the winners", number: true, down: true, value: (row) => times[row].winner, cell: (row) => timeText(times[row].winner) },
    { label: "bar of the time with the winners", unseen: true, class: "drawn", cell: (row) => rankBar(times[row].winner, most) },
  ];
  const waitColumns = [
    { label: "agreed", number: true, value: (row) => wait(row, 0), cell: (row) => (isKnown(wait(row, 0)) ? grouped(wait(row, 0)) : "-") },
    { label: "not agreed", number: true, value: (row) => wait(row, 1), cell: (row) => (isKnown(wait(row, 1)) ? grouped(wait(row, 1)) : "-") },
    { label: "waited", number: true, down: true, value: (row) => wait(row, 2), cell: (row) => timeText(wait(row, 2)) },
    { label: "bar of the time waited", unseen: true, class: "drawn", cell: (row) => rankBar(wait(row, 2), mostWait) },
    { label: "longest wait", number: true, down: true, value: (row) => wait(row, 3), cell: (row) => timeText(wait(row, 3)) },
  ];
  holder.append(sortedTable({
    id: "rank-table",
    caption: job.together ? "Ranks that tuned together" : "Ranks that tuned each by itself",
    label: "Ranks",
    searchLabel: "Search ranks",
    pageSize: 24,
    rows: Array.from(job.ranks.keys()),
    rowClass: (row) => (row === slowest ? "chosen" : null),
    columns: [
      { label: "rank", head: true, value: (row) => job.ranks[row], cell: (row) => [String(job.ranks[row]), row === slowest && " ", row === slowest && make("span", { class: "tag" }, "slowest")] },
      ...(isKnown(most) ? timeColumns : []),
      ...(isKnown(mostWait) ? waitColumns : []),
      { label: "GPU", value: (row) => textAt(job.raw.ranks[row].gpu), cell: (row) => textAt(job.raw.ranks[row].gpu) && nameOf(textAt(job.raw.ranks[row].gpu), 28) },
      { label: "process", number: true, value: (row) => job.raw.ranks[row].pid, cell: (row) => String(job.raw.ranks[row].pid) },
    ],
  }).element);
  if (!region || !region.sites.length) return;
  const part = make("div", {});
  const kind = make("select", {}, make("option", { value: "configs" }, "configs of a site"), make("option", { value: "sites" }, "winners of all sites"));
  const site = make("select", { id: "heat-site" }, region.sites.map((one) => make("option", { value: one.place }, one.label)));
  const against = make("select", {}, make("option", { value: "own" }, "each rank's best config"), make("option", { value: "all" }, "the best of all ranks"));
  const againstField = make("label", { class: "field" }, "Compare with", against);
  against.addEventListener("change", () => show());
  const siteField = make("label", { class: "field" }, "Site", site);
  const show = () => {
    siteField.hidden = againstField.hidden = kind.value !== "configs";
    part.replaceChildren(kind.value === "configs" ? configHeat(region.sites[Number(site.value)], state, against.value === "own") : siteHeat(region, state));
  };
  site.addEventListener("change", () => state.choose({ site: Number(site.value) }));
  kind.addEventListener("change", show);
  state.onHeatSite = () => {
    site.value = String(state.site || 0);
    show();
  };
  holder.append(make("h3", {}, "Ranks by configs"),
    make("div", { class: "controls" }, make("label", { class: "field" }, "Show", kind), siteField, againstField), part);
  state.onHeatSite();
}

const heatLegend = (best, worst) => {
  const unit = rem();
  const cell = (level) => draw("rect", { class: "mark", "fill-opacity": (0.06 + (0.94 * level) / (heatLevels - 1)).toFixed(3), x: level * unit, width: unit, height: 0.8 * unit });
  return make("p", { class: "legend" }, make("span", {}, worst, " ",
    draw("svg", { width: heatLevels * unit, height: 0.8 * unit, "aria-hidden": "true" }, Array.from({ length: heatLevels }, (_, level) => cell(level))), best));
};

/// @param own each rank is compared with its own best config, else with that of the fastest rank
function configHeat(site, state, own) {
  const places = site.byTime;
  const ranks = state.job.ranks;
  const all = places.flatMap((place) => ranks.map((_, rank) => site.medianOfRank(place, rank))).filter(isKnown);
  if (!all.length)
    return make("p", { class: "muted" }, site.raw.medians === "" ? "The page has no times by rank of this site, for there are very many of them; `contextune logs --json` has them."
      : "No rank measured this site.");
  const best = ranks.map((_, rank) => smallest(own ? places.map((place) => site.medianOfRank(place, rank)) : all));
  const over = (row, column) => site.medianOfRank(places[column], row) / best[row] - 1;
  const longest = largest(ranks.flatMap((_, row) => places.map((__, column) => over(row, column))).filter(isKnown));
  // Of what takes twice as long it does not matter how much longer.
  const worst = Math.min(longest, 1) || 0.01;
  const marks = [{ place: site.placeOf(site.winner), text: "winner" }, { place: site.placeOf(0), text: "default" }]
    .filter((mark) => mark.place >= 0).map((mark) => ({ column: places.indexOf(mark.place), text: mark.text }));
  if (marks.length === 2 && Math.abs(marks[0].column - marks[1].column) * 4 < places.length / 4) marks.pop();
  return make("div", {},
    make("p", { class: "muted" }, "A row a rank, a column a config, the fastest on the left. The stronger the colour, the faster."),
    heatLegend(own ? "the rank's best" : "the best of all", (longest > worst ? "at least " : "") + percentText(worst) + " more"),
    responsive((width) => heatMap({
      label: `Medians of ${countText(ranks.length, "rank", "ranks")} for ${countText(places.length, "config", "configs")} of ${site.label}`,
      rows: ranks.map(String),
      columns: places,
      marks,
      value: (row, column) => (isKnown(over(row, column)) ? Math.min(1, over(row, column) / worst) : NaN),
      text: (row, column) => {
        const config = site.configs[places[column]];
        return `rank ${ranks[row]}, config-${config} ${site.text(config)}\n${timeText(site.medianOfRank(places[column], row))}, ${percentText(over(row, column))} more than ${own ? "its best" : "the best of all"}` +
          (config === site.winnerByRank[row] ? "\nits winner" : "") + (config === 0 ? "\ndefault" : "");
      },
    }, Math.min(width, 110 * rem()))));
}

/// How much longer each rank takes for a site's winner than the fastest rank.
function siteHeat(region, state) {
  const ranks = state.job.ranks;
  const sites = region.sites;
  const least = sites.map((site) => smallest(site.winnerTimes));
  const over = (row, column) => sites[column].winnerTimes[row] / least[column] - 1;
  const worst = largest(sites.flatMap((_, column) => ranks.map((__, row) => over(row, column))).filter(isKnown)) || 0.01;
  return make("div", {},
    make("p", { class: "muted" }, "A row a rank, a column a site. The stronger the colour, the closer to the fastest rank."),
    heatLegend("as the fastest rank", `${percentText(worst)} more`),
    responsive((width) => heatMap({
      label: `Times of ${countText(ranks.length, "rank", "ranks")} for the winners of ${countText(sites.length, "site", "sites")}`,
      rows: ranks.map(String),
      columns: sites.map((site) => site.label),
      value: (row, column) => (isKnown(over(row, column)) ? over(row, column) / worst : NaN),
      text: (row, column) => `rank ${ranks[row]}, ${sites[column].label}\n${timeText(sites[column].winnerTimes[row])}, ${percentText(over(row, column))} more than the fastest rank`,
    }, Math.min(width, 110 * rem()))));
}
