// A heat map: a rectangle a cell, drawn as one path for each level.

const heatLevels = 12;

/// @param map {label, rows, columns: names; value(row, column): 0 best to 1 worst, or NaN; text(row, column)}
function heatMap(map, width) {
  const unit = rem();
  const left = Math.min(9 * unit, 1 * unit + 0.6 * unit * Math.max(...map.rows.map((row) => row.length)));
  const bottomRoom = 1.6 * unit;
  const cellWidth = Math.max(2, Math.min(3 * unit, (width - left) / map.columns.length));
  const cellHeight = Math.max(4, Math.min(1.4 * unit, (46 * unit) / map.rows.length));
  const right = left + cellWidth * map.columns.length;
  const height = cellHeight * map.rows.length;
  const gap = cellWidth > 6 && cellHeight > 6 ? 1 : 0;
  const paths = Array.from({ length: heatLevels }, () => []);
  map.rows.forEach((_, row) => map.columns.forEach((__, column) => {
    const value = map.value(row, column);
    if (!isKnown(value)) return;
    const level = Math.min(heatLevels - 1, Math.max(0, Math.floor((1 - value) * heatLevels)));
    const x = left + column * cellWidth;
    const y = row * cellHeight;
    paths[level].push(`M${x.toFixed(2)} ${y.toFixed(2)}h${(cellWidth - gap).toFixed(2)}v${(cellHeight - gap).toFixed(2)}h-${(cellWidth - gap).toFixed(2)}z`);
  }));
  const every = Math.ceil((1.1 * unit) / cellHeight);
  const cursor = draw("rect", { class: "cursor", width: cellWidth, height: cellHeight, visibility: "hidden" });
  const svg = chart(right + unit, height + bottomRoom, map.label,
    paths.map((path, level) => path.length > 0 && draw("path", { class: "mark", "fill-opacity": (0.06 + (0.94 * level) / (heatLevels - 1)).toFixed(3), d: path.join("") })),
    map.rows.map((row, i) => i % every === 0 &&
      draw("text", { x: left - 0.5 * unit, y: i * cellHeight + cellHeight / 2 + 0.28 * unit, "text-anchor": "end", class: map.strongRow === i ? "strong" : null }, row)),
    (map.marks || []).map(({ column, text }) => [
      draw("line", { class: "zero", x1: left + (column + 0.5) * cellWidth, x2: left + (column + 0.5) * cellWidth, y1: height, y2: height + 0.4 * unit }),
      draw("text", { x: left + (column + 0.5) * cellWidth, y: height + 1.3 * unit, "text-anchor": column * cellWidth < 2 * unit ? "start" : "middle" }, text)]),
    cursor);
  const at = { row: 0, column: 0 };
  const move = (row, column) => {
    at.row = row;
    at.column = column;
    cursor.setAttribute("x", left + column * cellWidth);
    cursor.setAttribute("y", row * cellHeight);
    cursor.setAttribute("visibility", "visible");
  };
  const holder = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": map.label + "; arrow keys read its cells" }, svg);
  withHover(svg, (event) => {
    const box = svg.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) * ((right + unit) / box.width) - left) / cellWidth);
    const row = Math.floor(((event.clientY - box.top) * ((height + bottomRoom) / box.height)) / cellHeight);
    if (!(column in map.columns && row in map.rows)) return "";
    move(row, column);
    return map.text(row, column);
  });
  svg.addEventListener("pointerleave", () => cursor.setAttribute("visibility", "hidden"));
  holder.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!by) return;
    event.preventDefault();
    move(Math.max(0, Math.min(map.rows.length - 1, at.row + by[0])), Math.max(0, Math.min(map.columns.length - 1, at.column + by[1])));
    say(map.text(at.row, at.column).replace(/\n/g, ", "));
  });
  return holder;
}
