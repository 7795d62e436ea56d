// Elements. Text of the log becomes text nodes and attributes, never markup.

function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

function setAll(element, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  return element;
}

const make = (tag, attributes, ...children) => fill(setAll(document.createElement(tag), attributes), children);
const draw = (tag, attributes, ...children) =>
  fill(setAll(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes), children);

/// A chart: an image with a name for those who do not see it.
const chart = (width, height, label, ...children) =>
  draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);

/// A name, short, with all of it where the pointer rests.
const nameOf = (text, width = 48) => {
  if (text === "") return make("span", { class: "name muted" }, "(unnamed)");
  const short = shortened(text, width);
  return make("span", { class: "name mono", title: short === text ? null : text }, short);
};

const simulatedTag = (job) => (job.simulated ? make("span", { class: "tag simulated" }, "simulated") : null);

const say = (text) => {
  document.getElementById("said").textContent = text;
};

/// Shows text beside the pointer while that is over an element.
const hover = document.getElementById("hover");
function showHover(text, event) {
  hover.textContent = text;
  hover.hidden = false;
  const box = hover.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
  const below = event.clientY + 18;
  const y = below + box.height > window.innerHeight ? event.clientY - box.height - 10 : below;
  hover.style.left = Math.max(4, x) + "px";
  hover.style.top = Math.max(4, y) + "px";
}
const hideHover = () => {
  hover.hidden = true;
};
function withHover(element, textOf) {
  element.addEventListener("pointermove", (event) => {
    const text = textOf(event);
    text ? showHover(text, event) : hideHover();
  });
  element.addEventListener("pointerleave", hideHover);
  return element;
}
document.addEventListener("scroll", hideHover, { passive: true, capture: true });

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages of files have no clipboard in some browsers.
    const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("Copied.");
}

const copyButton = (label, text) => {
  const button = make("button", { type: "button", class: "copy" }, label);
  button.addEventListener("click", async () => {
    await copyText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
};

/// Few things are shown below each other, of many the one that is chosen.
function oneOrFew(label, things, nameOfThing, show) {
  if (things.length <= 3) return things.map(show);
  const part = make("div", {}, show(things[0]));
  const select = make("select", {}, things.map((thing, i) => make("option", { value: i }, shortened(nameOfThing(thing), 60))));
  select.addEventListener("change", () => part.replaceChildren(...[show(things[Number(select.value)])].flat().filter(Boolean)));
  return [make("div", { class: "controls" }, make("label", { class: "field" }, label, select)), part];
}

/// Draw charts that were not drawn yet, or for another width: before the page is printed.
const unseenCharts = new Set();

/// Draws a chart as wide as there is room, again whenever that changes.
function responsive(drawIn) {
  const holder = make("div", { class: "chart" });
  let last = 0;
  const draws = () => {
    const width = Math.floor(holder.clientWidth);
    if (width === last || width === 0) return false;
    last = width;
    return true;
  };
  new ResizeObserver(() => {
    // In the next frame: what is drawn may change the size once more.
    if (draws()) requestAnimationFrame(() => holder.replaceChildren(drawIn(last)));
  }).observe(holder);
  unseenCharts.add(() => {
    if (draws()) holder.replaceChildren(drawIn(last));
  });
  return holder;
}
const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);
