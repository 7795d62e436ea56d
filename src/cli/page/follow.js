// Newer data from the server of `contextune report --follow`, drawn in place: what is open, chosen, searched or scrolled to
// stays so. A page in a file has no version, and asks nobody.

/// Parts of the page by names that newer data do not change: where it stands, what it says, how many before it are the same.
function namedParts(selector, textOf) {
  const parts = new Map();
  const counts = new Map();
  for (const element of main.querySelectorAll(selector)) {
    const section = element.closest("section");
    const name = [section ? section.id : "", element.tagName, textOf(element)].join("\n");
    const count = counts.get(name) || 0;
    counts.set(name, count + 1);
    parts.set(name + "\n" + count, element);
  }
  return parts;
}
const labelOf = (element) => element.getAttribute("aria-label") || (element.labels && element.labels.length ? element.labels[0].firstChild.textContent : element.textContent);
const partsThatOpen = () => namedParts("details", (details) => details.querySelector("summary").textContent);
const partsThatChoose = () => namedParts("select, input[type=checkbox]", labelOf);
const partsThatScroll = () => namedParts(".scroll", labelOf);
const partsWithFocus = () => namedParts("a, button, input, select, summary, [tabindex]", labelOf);
const partsToHold = () => namedParts("section, h3, tbody th, summary", (element) => (element.tagName === "SECTION" ? "" : element.textContent));

const nameIn = (parts, wanted) => [...parts].find(([, element]) => element === wanted)?.[0];

/// How the reader has set and sees the page.
function seenNow() {
  const hold = [...partsToHold()].find(([, element]) => element.getBoundingClientRect().top >= 0);
  const focused = document.activeElement;
  return {
    drawn: sections.map((section) => section.id).filter((id) => document.getElementById(id) && !pending.has(id)),
    open: [...partsThatOpen()].map(([name, details]) => [name, details.open]),
    chosen: [...partsThatChoose()].map(([name, field]) => [name, field.type === "checkbox" ? field.checked : field.value]),
    scrolled: [...partsThatScroll()].map(([name, part]) => [name, part.scrollLeft, part.scrollTop]).filter(([, left, top]) => left || top),
    focus: main.contains(focused) && focused !== main ? nameIn(partsWithFocus(), focused) : undefined,
    caret: focused.type === "search" ? [focused.selectionStart, focused.selectionEnd] : null,
    held: hold && { name: hold[0], top: hold[1].getBoundingClientRect().top },
    scroll: window.scrollY,
  };
}

function showAsSeen(seen) {
  const fields = partsThatChoose();
  for (const [name, value] of seen.chosen) {
    const field = fields.get(name);
    const property = field && field.type === "checkbox" ? "checked" : "value";
    if (!field || field[property] === value) continue;
    field[property] = value;
    if (field[property] === value) field.dispatchEvent(new Event("change"));
  }
  const details = partsThatOpen();
  for (const [name, open] of seen.open) if (details.has(name)) details.get(name).open = open;
  const scrolls = partsThatScroll();
  for (const [name, left, top] of seen.scrolled) if (scrolls.has(name)) scrolls.get(name).scrollTo(left, top);
  const focus = seen.focus === undefined ? undefined : partsWithFocus().get(seen.focus);
  if (focus) {
    focus.focus({ preventScroll: true });
    if (seen.caret && focus.type === "search") focus.setSelectionRange(...seen.caret);
  }
  const held = seen.held && partsToHold().get(seen.held.name);
  if (held && seen.scroll > 0) window.scrollBy(0, held.getBoundingClientRect().top - seen.held.top);
  else window.scrollTo(0, seen.scroll);
}

/// Draws newer data. The page keeps its height meanwhile, or the browser would scroll to where it ends.
function update(raw) {
  const processOf = (job) => textAt(job.raw.ranks[0].run) + " " + job.raw.ranks[0].pid;
  const process = state.job && processOf(state.job);
  const region = state.region && state.region.name;
  const site = state.region && state.region.sites[state.site] && [state.region.sites[state.site].name, state.region.sites[state.site].key].join("\n");
  const seen = state.job ? seenNow() : null;
  hideHover();
  load(raw);
  const first = !state.job;
  state.job = jobs.find((job) => processOf(job) === process) || jobs[0];
  if (!state.job) return;
  if (first) return start();
  state.region = state.job.regions.find((one) => one.name === region) || defaultRegion(state.job);
  const place = state.region ? state.region.sites.findIndex((one) => [one.name, one.key].join("\n") === site) : -1;
  state.site = Math.max(0, place);
  main.style.minHeight = main.offsetHeight + "px";
  keepingViews(() => {
    fillHeader();
    build();
    seen.drawn.forEach(render);
    for (const drawNow of unseenCharts) drawNow();
    showAsSeen(seen);
  });
  main.style.minHeight = "";
}

/// Whether newer data would take something away that the reader is about to use: marked text, a list that is open.
let lastAction = 0;
function isInUse() {
  const selection = document.getSelection();
  if (!selection.isCollapsed && main.contains(selection.anchorNode)) return true;
  return document.activeElement.tagName === "SELECT" && performance.now() - lastAction < 5000;
}

function follow() {
  let version = document.documentElement.dataset.version;
  let paused = false;
  let waiting = 2000;
  const pause = document.getElementById("pause");
  const live = document.getElementById("live");
  const tell = (text, isNews) => {
    live.textContent = text;
    if (isNews) say(text);
  };
  const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const clock = () => new Date().toLocaleTimeString();
  for (const action of ["pointerdown", "keydown"]) document.addEventListener(action, () => (lastAction = performance.now()), { capture: true, passive: true });
  pause.hidden = live.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    tell(paused ? "paused" : "live", true);
  });

  /// Returns whether the server is to be asked again.
  async function ask() {
    const begin = performance.now();
    const response = await fetch("data", { cache: "no-store", headers: { "If-None-Match": `"${version}"` }, signal: AbortSignal.timeout(90000) });
    if (response.status === 403 || response.status === 404) {
      tell("ended: open the address that `contextune report --follow` prints now", true);
      return false;
    }
    if (response.status !== 200 && response.status !== 304) throw new Error(response.statusText);
    const raw = response.status === 200 ? await response.json() : null;
    while (raw && (paused || isInUse())) await sleep(200);
    if (raw) {
      update(raw);
      version = response.headers.get("ETag").replace(/"/g, "");
      tell("live, last change " + clock());
    } else if (!live.textContent.startsWith("live")) {
      tell("live");
    }
    // What takes long is asked for less often.
    waiting = Math.min(Math.max(2000, 4 * (performance.now() - begin)), 10000);
    return true;
  }

  (async () => {
    for (let again = true; again; ) {
      await sleep(waiting);
      if (paused || document.hidden) continue;
      try {
        again = await ask();
      } catch {
        if (!live.textContent.startsWith("no answer")) tell("no answer since " + clock() + "; asking again", true);
        waiting = 5000;
      }
    }
  })();
  tell("live");
}

if (isLive) follow();
