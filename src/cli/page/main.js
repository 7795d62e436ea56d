// The page: its sections, what is chosen, the address.

const sections = [
  { id: "verdict", title: "Verdict", lead: "What tuning won in each region, and with which confidence.", show: showVerdict },
  { id: "regions", title: "Regions and launches", lead: "Regions that were marked or found, and how their launches reached the driver.", show: showRegions },
  { id: "sites", title: "Sites and configs", lead: "Every site with its winner; a site's name shows all of its configs by time.", show: showSites, hasFigures: true },
  { id: "passes", title: "Passes by site", lead: "The config that every site ran in every pass, with the parameters that vary. All sites advance at once.", show: showPasses },
  { id: "ranks", title: "Ranks", lead: "Ranks side by side: the slowest one, and who waited for whom.", show: showRanks, when: (job) => job.ranks.length > 1 },
  { id: "confirmation", title: "Confirmation", lead: "Passes with the winners and passes with the defaults, in turns: each pair gives a gain.", show: showConfirmation },
  { id: "timeline", title: "Timeline", lead: "When each stage of the tuning began, and what it took.", show: showTimeline, hasFigures: true },
  { id: "not-tuned", title: "Not tuned", lead: "Work that was not tuned, or not as asked, and what to do.", show: showTroubles },
  { id: "environment", title: "Environment", lead: "What ran where, and how to run it again.", show: showEnvironment },
];

const main = document.getElementById("main");
const state = { job: jobs[0], region: null, site: 0 };
let pending = new Map();
let watcher = null;

function render(id) {
  const show = pending.get(id);
  if (!show) return;
  pending.delete(id);
  show();
}
const renderAll = () => [...pending.keys()].forEach(render);

function build() {
  main.replaceChildren();
  unseenCharts.clear();
  pending = new Map();
  if (watcher) watcher.disconnect();
  watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) render(entry.target.id);
  }, { rootMargin: "600px" });
  state.onSite = state.onHeatSite = null;
  const shown = sections.filter((section) => !section.when || section.when(state.job));
  for (const section of shown) {
    const holder = make("div", { class: "later" });
    const element = make("section", { id: section.id, "aria-labelledby": section.id + "-title" },
      make("h2", { id: section.id + "-title" }, section.title), make("p", { class: "lead" }, section.lead, " ", section.hasFigures && simulatedTag(state.job)), holder);
    main.append(element);
    pending.set(section.id, () => {
      section.show(holder, state);
      holder.classList.remove("later");
    });
    watcher.observe(element);
  }
  document.querySelector("#contents ul").replaceChildren(...shown.map((section) =>
    make("li", {}, make("a", { href: "#" + section.id }, section.title))));
  markPlace();
  render("verdict");
}

/// The section at the top of the window is marked in the list of them.
function markPlace() {
  const reached = [...main.querySelectorAll("section")].filter((section) => section.getBoundingClientRect().top < Math.min(window.innerHeight / 3, 12 * rem()));
  const atEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2 && window.scrollY > 0;
  const all = main.querySelectorAll("section");
  const current = atEnd ? all[all.length - 1] : reached[reached.length - 1] || all[0];
  for (const link of document.querySelectorAll("#contents a")) {
    if (current && link.getAttribute("href") === "#" + current.id) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}
document.addEventListener("scroll", () => requestAnimationFrame(markPlace), { passive: true });

/// The address names what is chosen: #section, or #site=NAME&region=NAME&job=N.
function writeAddress(section) {
  const parts = new URLSearchParams();
  if (jobs.indexOf(state.job) > 0) parts.set("job", jobs.indexOf(state.job));
  if (state.region && state.region !== defaultRegion(state.job)) parts.set("region", state.region.name);
  if (state.region && state.region.sites[state.site]) parts.set("site", state.region.sites[state.site].label);
  if (section && !parts.size) return history.replaceState(null, "", "#" + section);
  history.replaceState(null, "", "#" + parts.toString());
}

const defaultRegion = (job) => job.regions.find((region) => region.sites.some((site) => site.configs.length > 1)) || job.regions[0] || null;

function choose(choice, jump) {
  const before = [state.job, state.region];
  if (choice.job !== undefined && jobs[choice.job]) {
    state.job = jobs[choice.job];
    state.region = defaultRegion(state.job);
    state.site = 0;
  }
  if (choice.region !== undefined && choice.region) {
    state.region = choice.region;
    state.site = 0;
  }
  if (choice.site !== undefined) state.site = choice.site;
  if (before[0] !== state.job || before[1] !== state.region) {
    views.clear();
    fillHeader();
    build();
  } else {
    if (state.onSite) state.onSite();
    if (state.onHeatSite) state.onHeatSite();
  }
  if (!choice.quiet) writeAddress();
  if (jump) jumpTo(jump);
}
state.choose = choose;

function jumpTo(id) {
  for (const section of sections) {
    render(section.id);
    if (section.id === id || (id === "site" && section.id === "sites")) break;
  }
  const target = document.getElementById(id);
  if (target) target.scrollIntoView({ block: "start" });
}

function readAddress() {
  const address = location.hash.slice(1);
  if (!address) return;
  if (sections.some((section) => section.id === address)) return jumpTo(address);
  const parts = new URLSearchParams(address);
  const choice = { quiet: true };
  const job = jobs[Number(parts.get("job"))] || state.job;
  if (parts.has("job")) choice.job = jobs.indexOf(job);
  const wanted = parts.get("site");
  const isIt = (site) => site.label === wanted || site.name === wanted;
  const named = job.regions.find((region) => region.name === parts.get("region"));
  const region = named || (wanted !== null && job.regions.find((one) => one.sites.some(isIt))) || null;
  if (region && region !== state.region) choice.region = region;
  const site = (region || state.region || { sites: [] }).sites.find(isIt);
  if (site) choice.site = site.place;
  if (wanted !== null && !site) say(`There is no site ${wanted}.`);
  choose(choice, site ? "site" : parts.get("section") || (named ? "sites" : null));
}

function fillHeader() {
  const { job } = state;
  const process = job.raw.ranks[0];
  const program = textAt(process.program).split("/").pop() || "run";
  document.title = shortened(program, 40) + ", run " + textAt(process.run) + " - contextune";
  document.getElementById("title").replaceChildren(nameOf(program, 60));
  const gpus = [...new Set(job.raw.ranks.map((rank) => textAt(rank.gpu)))].filter(Boolean);
  document.getElementById("facts").textContent = ["run " + shortened([...new Set(job.raw.ranks.map((rank) => textAt(rank.run)))].join(", "), 80),
    job.ranks.length > 1 ? `${job.ranks.length} ranks` + (job.together ? " that tuned together" : "") : `rank ${job.ranks[0]}`,
    shortened(gpus.join("; "), 120), textAt(process.first).replace("T", " ").replace(/\.\d+Z$/, " UTC")].filter(Boolean).join(" \u00b7 ");
  document.getElementById("simulated").hidden = !job.simulated;
  const select = (id, options, chosen, onChoose) => {
    const element = document.getElementById(id);
    element.replaceChildren(...options.map((text, i) => make("option", { value: i }, shortened(text, 60))));
    element.value = String(chosen);
    element.onchange = () => onChoose(Number(element.value));
    document.getElementById(id + "-field").hidden = options.length < 2;
  };
  select("job", jobs.map((one) => {
    const first = one.raw.ranks[0];
    return `${textAt(first.program).split("/").pop() || "process"}, run ${textAt(first.run)}, ${one.ranks.length > 1 ? one.ranks.length + " ranks" : "rank " + one.ranks[0]}`;
  }), jobs.indexOf(job), (i) => choose({ job: i }));
  select("region", job.regions.map((region) => region.name), job.regions.indexOf(state.region), (i) => choose({ region: job.regions[i] }));
}

function startTheme() {
  const button = document.getElementById("theme");
  const themes = ["system", "light", "dark"];
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let theme = "system";
  try {
    theme = localStorage.getItem("contextune-theme") || "system";
  } catch {
    // Some browsers keep nothing for files.
  }
  const apply = () => {
    if (!themes.includes(theme)) theme = "system";
    document.documentElement.dataset.theme = theme === "system" ? (system.matches ? "dark" : "light") : theme;
    button.textContent = "Theme: " + theme;
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("contextune-theme", theme);
    } catch {
      // As above.
    }
    apply();
  });
  system.addEventListener("change", apply);
  // Paper is white.
  window.addEventListener("beforeprint", () => {
    renderAll();
    for (const drawNow of unseenCharts) drawNow();
    document.documentElement.dataset.theme = "light";
  });
  window.addEventListener("afterprint", apply);
  apply();
}

startTheme();
document.getElementById("print").addEventListener("click", () => window.print());
function start() {
  state.region = defaultRegion(state.job);
  fillHeader();
  build();
  readAddress();
  window.addEventListener("hashchange", readAddress);
}

if (state.job) {
  start();
} else {
  main.append(make("p", {}, isLive ? "No log is there yet: what a program writes appears here." : "The logs hold no process."));
}
