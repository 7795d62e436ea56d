// The pairs that the verdict rests on, and winners that were left out to see whether they help.

function pairChart(confirm, gains, width) {
  const unit = rem();
  const height = 13 * unit;
  const left = 4 * unit;
  const bottom = height - 2.2 * unit;
  const [low, high] = widened([0, confirm.bound, ...gains].filter(isKnown), 0.06);
  const y = linear(low, high, bottom, 0.6 * unit);
  const x = linear(0.5, gains.length + 0.5, left, width - 5 * unit);
  const ticks = ticksBetween(low, high, 5);
  const labels = percentLabels(ticks);
  const right = width - 5 * unit;
  const note = (value, text) => draw("text", { x: right + 0.4 * unit, y: y(value) + 0.28 * unit }, text);
  const apart = Math.abs(y(confirm.gain) - y(confirm.bound)) > unit;
  const points = gains.map((gain, i) => withHover(
    draw("circle", { class: gain > 0 ? "mark" : "other", cx: x(i + 1), cy: y(gain), r: 0.28 * unit }),
    () => `pair ${i + 1} of ${gains.length}\n${lessText(gain)} time with the winners`));
  return chart(width, height, `Gains of ${countText(gains.length, "pair", "pairs")}: mean ${percentText(confirm.gain)}, 95 % bound ${percentText(confirm.bound)}`,
    ticks.map((tick, i) => [draw("line", { class: "axis", x1: left, x2: right, y1: y(tick), y2: y(tick) }),
      draw("text", { x: left - 0.5 * unit, y: y(tick) + 0.28 * unit, "text-anchor": "end" }, labels[i])]),
    isKnown(confirm.bound) && draw("rect", { class: "band", x: left, width: right - left, y: Math.min(y(confirm.bound), y(confirm.gain)), height: Math.abs(y(confirm.gain) - y(confirm.bound)) }),
    draw("line", { class: "zero", x1: left, x2: right, y1: y(0), y2: y(0) }),
    isKnown(confirm.gain) && draw("line", { class: "mark-line", x1: left, x2: right, y1: y(confirm.gain), y2: y(confirm.gain) }),
    isKnown(confirm.bound) && draw("line", { class: "mark-line", "stroke-width": 1, "stroke-dasharray": "4 3", x1: left, x2: right, y1: y(confirm.bound), y2: y(confirm.bound) }),
    isKnown(confirm.gain) && note(confirm.gain, "mean"), isKnown(confirm.bound) && apart && note(confirm.bound, "bound"),
    points,
    draw("text", { x: (left + right) / 2, y: height - 0.3 * unit, "text-anchor": "middle" }, "pair, as they ran; every other one began with the winners"));
}

function pairsPart(region, confirm, state) {
  const gains = confirm.gains || [];
  return make("div", {},
    make("h3", {}, nameOf(region.name, 40), confirm.site ? [", ", nameOf(textAt(confirm.site), 40)] : null, " ", simulatedTag(state.job),
      confirm.ranks.length < state.job.ranks.length && make("span", { class: "muted" }, " " + ranksText(confirm.ranks.map((rank) => state.job.ranks[rank])))),
    make("p", {}, `${countText(confirm.pairs, "pair", "pairs")}`, confirm.tries > 1 ? ` of the last of ${confirm.tries} tries` : "",
      confirm.stored ? ", by the run that found what this one started with" : "",
      `: ${lessText(confirm.gain ?? NaN)} time in the mean, 95 % bound ${percentText(confirm.bound ?? NaN)}.`),
    gains.length > 0 ? responsive((width) => pairChart(confirm, gains, Math.min(width, 72 * rem())))
      : !confirm.stored && make("p", { class: "muted" }, "The log does not hold the pairs: an older contextune wrote it."));
}

function showConfirmation(holder, state) {
  let shown = 0;
  for (const region of state.job.regions) {
    const compared = region.raw.confirms.filter((one) => one.pairs > 0);
    shown += compared.length;
    fill(holder, [oneOrFew("Pairs of", compared, (one) => [textAt(one.site), ranksText(one.ranks.map((rank) => state.job.ranks[rank]))].filter(Boolean).join(", "),
      (confirm) => pairsPart(region, confirm, state))]);
    if (region.raw.left_out.length) holder.append(leftOutPart(region, state));
  }
  if (!shown) holder.append(make("p", { class: "muted" }, "Nothing was compared in pairs."));
}

function leftOutPart(region, state) {
  const site = (one) => (region.sites[one.place] ? region.sites[one.place].label : "unnamed");
  return make("div", {}, make("h3", {}, "Each winner of ", nameOf(region.name, 40), " left out once"),
    sortedTable({
      id: null,
      caption: "What the region takes without one of the winners, and with all",
      rows: region.raw.left_out,
      columns: [
        { label: "site", head: true, value: site, cell: (one) => nameOf(site(one), 44) },
        { label: "without it", number: true, value: (one) => one.before ?? NaN, cell: (one) => timeText(one.before ?? NaN) },
        { label: "with all", number: true, value: (one) => one.after ?? NaN, cell: (one) => timeText(one.after ?? NaN) },
        { label: "with it", number: true, down: true, value: (one) => one.gain ?? NaN, cell: (one) => lessText(one.gain ?? NaN) },
        { label: "95 % bound", number: true, down: true, value: (one) => one.bound ?? NaN, cell: (one) => percentText(one.bound ?? NaN) },
        { label: "pairs", number: true, value: (one) => one.pairs },
        { label: "the winner is", value: (one) => textAt(one.verdict) },
      ],
    }).element);
}
