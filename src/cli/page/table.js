// Tables that are sorted by a column's head, searched, and shown a page at a time.

/// @param options.columns each {label, cell(row), value(row), number, head}: `value` sorts and, as text, is searched;
///   `head` names the row
/// @param options.rowClass a row's class
function sortedTable(options) {
  const { caption, columns, rows, id } = options;
  const pageSize = options.pageSize || 50;
  const state = viewOf(id, options.label || caption, { column: options.sort === undefined ? -1 : options.sort, down: Boolean(options.down), page: 0, words: "", all: false });
  const body = make("tbody");
  const heads = columns.map((column, i) => {
    const button = make("button", { type: "button", onclick: () => sortBy(i) }, column.label);
    const label = column.unseen ? make("span", { class: "unseen" }, column.label) : column.value ? button : column.label;
    return make("th", { scope: "col", class: column.number ? "number" : null }, label);
  });
  const table = make("table", { id }, make("caption", {}, caption), make("thead", {}, make("tr", {}, heads)), body);
  const pages = make("div", { class: "pages" });
  const holder = make("div", {});
  const texts = new Map();
  const textOf = (row) => {
    if (!texts.has(row))
      texts.set(row, columns.map((column) => (column.search || column.value || (() => ""))(row)).join(" ").toLowerCase());
    return texts.get(row);
  };

  const matching = () => {
    const words = state.words.toLowerCase().split(/\s+/).filter(Boolean);
    let found = words.length ? rows.filter((row) => words.every((word) => textOf(row).includes(word))) : rows.slice();
    if (options.filter) found = found.filter(options.filter);
    if (state.column < 0) return found;
    const value = columns[state.column].value;
    const order = (a, b) => {
      const x = value(a);
      const y = value(b);
      if (typeof x === "number" && typeof y === "number") {
        if (!isKnown(x) || !isKnown(y)) return isKnown(x) ? -1 : isKnown(y) ? 1 : 0;
        return state.down ? y - x : x - y;
      }
      return (state.down ? -1 : 1) * nameOrder.compare(String(x), String(y));
    };
    return found.sort(order);
  };

  function show() {
    const found = matching();
    const size = state.all ? Math.max(found.length, 1) : pageSize;
    state.page = Math.max(0, Math.min(state.page, Math.ceil(found.length / size) - 1));
    const begin = state.page * size;
    const shown = found.slice(begin, begin + size);
    body.replaceChildren(...shown.map((row) =>
      make("tr", { class: options.rowClass ? options.rowClass(row) : null },
        columns.map((column) =>
          make(column.head ? "th" : "td",
            { scope: column.head ? "row" : null, class: column.number ? "number" : column.class || null },
            column.cell ? column.cell(row) : column.value(row))))));
    if (!shown.length)
      body.append(make("tr", {}, make("td", { colspan: columns.length, class: "muted" }, "Nothing matches.")));
    heads.forEach((head, i) => {
      if (i === state.column) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const turn = (by) => () => {
      state.page += by;
      show();
    };
    const many = found.length > pageSize;
    pages.replaceChildren();
    if (many) {
      fill(pages, [
        make("span", {}, `${grouped(begin + 1)}-${grouped(begin + shown.length)} of ${grouped(found.length)}`),
        make("button", { type: "button", disabled: begin === 0, onclick: turn(-1) }, "Previous"),
        make("button", { type: "button", disabled: begin + shown.length >= found.length, onclick: turn(1) }, "Next"),
        found.length <= 2000 && make("button", { type: "button", onclick: () => ((state.all = !state.all), show()) },
          state.all ? "Show pages" : "Show all"),
      ]);
    }
    if (options.onShow) options.onShow(found);
  }
  function sortBy(i) {
    state.down = state.column === i ? !state.down : Boolean(columns[i].down);
    state.column = i;
    state.page = 0;
    show();
  }

  if (rows.length > 8 || options.search) {
    const input = make("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    input.value = state.words;
    input.addEventListener("input", () => {
      state.words = input.value;
      state.page = 0;
      show();
    });
    holder.append(make("div", { class: "controls" }, make("label", { class: "field" }, options.searchLabel || "Search", input),
      options.controls));
  } else if (options.controls) {
    holder.append(make("div", { class: "controls" }, options.controls));
  }
  holder.append(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: " + (options.label || caption) }, table), pages);
  show();
  return { element: holder, show, table };
}
