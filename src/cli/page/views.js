// What the reader has set in parts of the page, such as the order of a table, kept when newer data are drawn.

let views = new Map();
let earlierViews = new Map();

/// What is set in a part that is being drawn: as it was before, or else as `initial` says. A part without an id of its own
/// may be there several times, which are told apart by their order.
function viewOf(id, label, initial) {
  let key = (id || "") + "\n" + label;
  for (let count = 2; !id && views.has(key); ++count) key = "\n" + label + "\n" + count;
  const view = { ...initial, ...earlierViews.get(key) };
  views.set(key, view);
  return view;
}

/// Draws again by `draw`, in which parts begin as they are now.
function keepingViews(draw) {
  earlierViews = views;
  views = new Map();
  draw();
  earlierViews = new Map();
}
