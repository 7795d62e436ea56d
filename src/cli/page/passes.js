// The iteration table: which config every site ran in every pass.

const cellParts = /^config-(\d+) \((warm-up|iter-\d+)\)(?: (.+))?$/;

/// What a cell says: the config that ran, and what of it counts.
function readCell(text, site) {
  if (text === "**winner**") return { config: site.winner, kind: "won", note: "winner" };
  const trial = cellParts.exec(text);
  if (trial) return { config: Number(trial[1]), kind: trial[3] ? "failed" : "tried", note: trial[2] + (trial[3] ? ", " + trial[3] : "") };
  const plain = /^config-(\d+)(?: \((.+)\))?$/.exec(text);
  if (plain) return { config: Number(plain[1]), kind: "ran", note: plain[2] || "" };
  return { config: -1, kind: "none", note: text };
}

function passCell(text, site) {
  const cell = readCell(text, site);
  if (cell.config < 0) return make("td", {}, cell.note);
  const isWinner = cell.config === site.winner;
  const classes = cell.kind === "won" ? "won" : cell.kind === "failed" ? "failed" : isWinner ? "tried-winner" : null;
  return make("td", { class: classes, title: `config-${cell.config} ${site.text(cell.config)}` },
    "config-" + cell.config + (cell.note ? ` (${cell.note}) ` : " "),
    make("span", { class: "values" }, shortened(site.text(cell.config), 44)));
}

function passTable(table, sites, state) {
  const passes = Array.from(numbersOf(textAt(table.passes)), textAt);
  const columns = table.cells.map((column) => numbersOf(textAt(column)));
  const pageSize = Math.max(40, Math.min(200, Math.floor(3000 / Math.max(1, sites.length))));
  const view = viewOf("pass-table", "", { page: 0, changes: passes.length > 400 });
  const body = make("tbody");
  const pages = make("div", { class: "pages" });
  const configOf = (column, row) => {
    const text = textAt(columns[column][row]);
    return text.startsWith("config-") ? parseInt(text.slice(7), 10) : text;
  };
  // Rows in which some site runs another config than in the row before.
  const changed = [];
  for (let row = 0; row < passes.length; ++row)
    if (row === 0 || columns.some((_, i) => configOf(i, row) !== configOf(i, row - 1))) changed.push(row);
  const isChange = new Set(changed);
  const toggle = make("input", { type: "checkbox" });
  toggle.checked = view.changes;
  toggle.addEventListener("change", () => {
    view.changes = toggle.checked;
    view.page = 0;
    show();
  });

  function show() {
    const rows = view.changes ? changed : Array.from(passes.keys());
    view.page = Math.max(0, Math.min(view.page, Math.ceil(rows.length / pageSize) - 1));
    const begin = view.page * pageSize;
    const shown = rows.slice(begin, begin + pageSize);
    body.replaceChildren(...shown.map((row) =>
      make("tr", { class: !view.changes && row > 0 && isChange.has(row) ? "new-config" : null },
        make("th", { scope: "row" }, passes[row]), sites.map((site, i) => passCell(textAt(columns[i][row]), site)))));
    pages.replaceChildren();
    if (rows.length <= pageSize) return;
    const turn = (by) => () => {
      view.page += by;
      show();
    };
    fill(pages, [
      make("span", {}, `rows ${grouped(begin + 1)}-${grouped(begin + shown.length)} of ${grouped(rows.length)}`),
      make("button", { type: "button", disabled: begin === 0, onclick: turn(-1) }, "Previous"),
      make("button", { type: "button", disabled: begin + shown.length >= rows.length, onclick: turn(1) }, "Next"),
      make("button", { type: "button", onclick: turn(Math.ceil(rows.length / pageSize) - 1 - view.page) }, "Last"),
    ]);
  }
  show();
  return [
    make("div", { class: "controls" }, make("label", { class: "field" }, toggle, "only passes in which a config changes")),
    make("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Configs by pass and site" },
      make("table", { class: "passes", id: "pass-table" },
        make("caption", { class: "unseen" }, "The config that every site ran in every pass"),
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "pass"),
          sites.map((site) => make("th", { scope: "col", title: site.name + "\n" + site.key }, nameOf(site.label, 32))))),
        body)),
    pages,
  ];
}

function showPasses(holder, state) {
  const region = state.region;
  const tables = region ? region.raw.tables : [];
  if (!tables.length) {
    holder.append(make("p", { class: "muted" }, region && region.isFound
      ? "The region was found, and its launches are compared in blocks of entries, not in passes of a table."
      : "The log holds no passes of a table, or more than a page takes; `contextune logs --passes` shows them."));
    return;
  }
  const part = make("div", {});
  const choose = (i) => part.replaceChildren(...passTable(tables[i], tables[i].sites.map((place) => region.sites[place]), state));
  if (tables.length > 1) {
    const select = make("select", {}, tables.map((table, i) =>
      make("option", { value: i }, ranksText(table.ranks.map((rank) => state.job.ranks[rank])))));
    select.addEventListener("change", () => choose(Number(select.value)));
    holder.append(make("div", { class: "controls" }, make("label", { class: "field" }, "Table of", select)));
  } else if (state.job.ranks.length > 1) {
    holder.append(make("p", { class: "muted" }, `The same on ${ranksText(tables[0].ranks.map((rank) => state.job.ranks[rank]))}.`));
  }
  holder.append(part);
  choose(0);
}
