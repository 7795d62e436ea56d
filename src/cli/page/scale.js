// Scales and axes of charts.

/// Round numbers from `low` to `high`, about `count` of them.
function ticksBetween(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, count);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; ++i) ticks.push(i * step);
  return ticks;
}

/// From values to pixels.
function linear(low, high, from, to) {
  const span = high - low || 1;
  const scale = (value) => from + ((value - low) / span) * (to - from);
  scale.low = low;
  scale.high = high;
  scale.from = from;
  scale.to = to;
  return scale;
}

/// Decimals that a step has.
function digitsOf(step) {
  for (let digits = 0; digits < 6; ++digits) {
    const scaled = step * Math.pow(10, digits);
    if (Math.abs(scaled - Math.round(scaled)) < 1e-6 * Math.max(1, scaled)) return digits;
  }
  return 6;
}

/// Times on an axis are in the unit of the largest, with as many digits as tell the ticks apart.
function timeLabels(ticks) {
  const most = Math.max(...ticks.map(Math.abs));
  const [unit, factor] = most < 0.9995e-3 ? ["us", 1e6] : most < 0.9995 ? ["ms", 1e3] : ["s", 1];
  const digits = digitsOf(ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) * factor : most * factor);
  return ticks.map((tick) => (tick * factor).toFixed(digits) + " " + unit);
}

function percentLabels(ticks) {
  const digits = digitsOf(ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) * 100 : 1);
  return ticks.map((tick) => (tick * 100).toFixed(digits) + " %");
}

/// Lines and labels below (or above) a chart, without labels that would touch.
function axisX(scale, labelsOf, y, top, room) {
  const count = Math.max(2, Math.floor(Math.abs(scale.to - scale.from) / (room || 5.5 * rem())));
  const ticks = ticksBetween(scale.low, scale.high, count);
  const labels = labelsOf(ticks);
  return ticks.map((tick, i) => [
    draw("line", { class: "axis", x1: scale(tick), x2: scale(tick), y1: top, y2: y }),
    draw("text", { x: scale(tick), y: y + 1.1 * rem(), "text-anchor": "middle" }, labels[i]),
  ]);
}

/// The values with a little air on both sides.
function widened(values, share) {
  const low = smallest(values);
  const high = largest(values);
  const span = high - low || Math.abs(high) * 0.05 || 1;
  return [low - span * share, high + span * share];
}
