// When each stage of each region's tuning began, and what it took.

const stageWords = { table: "table: every config of every site", refine: "refine: the best few by the time of the region",
  confirm: "confirm: winners and defaults in turns", screen: "screen: every way to launch, beside as written",
  compare: "compare: the best way to launch and as written in turns" };
const stageShades = { table: 1, screen: 1, refine: 0.6, confirm: 0.3, compare: 0.3 };

/// Stages of one rank with their length in seconds, and their begin since that of the process.
function stagesOf(rank, first) {
  const offset = first && rank && rank.began ? Math.max(0, (Date.parse(textAt(rank.began)) - Date.parse(first)) / 1000) || 0 : 0;
  const stages = rank ? rank.stages : [];
  const end = rank && isKnown(rank.tuning) ? rank.tuning : NaN;
  return stages.map(([stage, generation, begin], i) => {
    const next = i + 1 < stages.length ? stages[i + 1][2] : textAt(stage) === "finished" ? begin : end;
    return { stage: textAt(stage), generation, begin: offset + (begin ?? NaN), length: Math.max(0, (next ?? NaN) - (begin ?? NaN)) };
  }).filter((stage) => stage.stage !== "finished");
}

function timelineChart(rows, width) {
  const unit = rem();
  const row = 2.4 * unit;
  const left = Math.min(11 * unit, width * 0.3);
  const end = largest(rows.flatMap((one) => one.stages.map((stage) => stage.begin + stage.length)).filter(isKnown)) || 1;
  const x = linear(0, end, left, width - 2 * unit);
  const bottom = row * rows.length;
  return chart(width, bottom + 1.8 * unit, "Stages of the tuning by time",
    axisX(x, timeLabels, bottom, 0),
    rows.map((one, i) => [
      draw("text", { x: left - 0.6 * unit, y: i * row + 1.35 * unit, "text-anchor": "end" }, shortened(one.name, Math.max(8, Math.floor(left / (0.55 * unit))))),
      one.stages.map((stage) => isKnown(stage.begin + stage.length) && [
        withHover(draw("rect", { class: "mark", "fill-opacity": stageShades[stage.stage] || 0.45, x: x(stage.begin), width: Math.max(1, x(stage.begin + stage.length) - x(stage.begin) - 1), y: i * row + 0.35 * unit, height: 1.5 * unit }),
          () => `${one.name}: ${stageWords[stage.stage] || stage.stage}\n${timeText(stage.length)}, from ${timeText(stage.begin)} on`)]),
    ]));
}

function showTimeline(holder, state) {
  const { job } = state;
  const part = make("div", {});
  const show = (rank) => {
    const rows = job.regions.map((region) => ({ name: region.name, region, stages: stagesOf(region.raw.ranks[rank], textAt(job.raw.ranks[rank].first)) })).filter((one) => one.stages.length);
    part.replaceChildren();
    if (!rows.length) {
      part.append(make("p", { class: "muted" }, "The log has no stages of a tuning: what was found was compared in blocks of entries, or stored by an earlier run."));
    } else {
      const unit = rem();
      const icon = (opacity) => draw("svg", { width: unit, height: 0.8 * unit, "aria-hidden": "true" }, draw("rect", { class: "mark", "fill-opacity": opacity, width: unit, height: 0.8 * unit }));
      const seen = [...new Set(rows.flatMap((one) => one.stages.map((stage) => stage.stage)))];
      part.append(make("p", { class: "legend" }, seen.map((stage) => make("span", {}, icon(stageShades[stage] || 0.45), stage))),
        responsive((width) => timelineChart(rows, Math.min(width, 100 * rem()))));
    }
    const lines = rows.flatMap(({ region, stages }) => stages.map((stage) => ({ region, stage })));
    const total = (region) => stagesOf(region.raw.ranks[rank]).reduce((sum, one) => sum + (one.length || 0), 0);
    if (lines.length)
      part.append(sortedTable({
        id: "stage-table",
        caption: "What each stage took",
        rows: lines,
        columns: [
          { label: "region", head: true, value: ({ region }) => region.name, cell: ({ region }) => nameOf(region.name, 40) },
          { label: "stage", value: ({ stage }) => stage.stage, cell: ({ stage }) => (stageWords[stage.stage] || stage.stage) + (stage.generation > 0 ? `, generation ${stage.generation}` : "") },
          { label: "began after", number: true, value: ({ stage }) => stage.begin, cell: ({ stage }) => (stage.begin === 0 ? "0 s" : timeText(stage.begin)) },
          { label: "took", number: true, down: true, value: ({ stage }) => stage.length, cell: ({ stage }) => timeText(stage.length) },
          { label: "share", number: true, down: true, value: ({ region, stage }) => stage.length / total(region), cell: ({ region, stage }) => percentText(stage.length / total(region)) },
        ],
      }).element);
    for (const region of job.regions) {
      const own = region.raw.ranks[rank];
      if (!own || !own.replays.length) continue;
      const last = own.replays[own.replays.length - 1];
      const seconds = own.replays.reduce((sum, one) => sum + (one.seconds || 0), 0);
      part.append(make("p", {}, nameOf(region.name, 40), ` was replayed in ${countText(last.visit, "visit", "visits")}: ${countText(last.replays, "replay", "replays")} of ${countText(last.operations, "operation", "operations")}, ` +
        `${bytesText(last.dirty)} put back, the program stood still for ${timeText(seconds)}. `, simulatedTag(job)));
    }
  };
  if (job.ranks.length > 1) {
    const select = make("select", {}, job.ranks.map((rank, i) => make("option", { value: i }, "rank " + rank)));
    select.addEventListener("change", () => show(Number(select.value)));
    holder.append(make("div", { class: "controls" }, make("label", { class: "field" }, "Of", select)));
  }
  holder.append(part);
  show(0);
}
