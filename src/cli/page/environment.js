// What ran, where, with which options; and how to run it again.

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'");

/// Options that are a launcher's, or where a run wrote.
const ownOptions = ["rank", "world-size", "address", "log-dir", "report", "quiet"];

function commandOf(process) {
  const options = (process.options || []).map(([name, value]) => [textAt(name), textAt(value)]);
  const address = (options.find(([name]) => name === "address") || ["", ""])[1];
  const flags = options
    .filter(([name, value]) => !ownOptions.includes(name) && !(name === "region" && value === "auto"))
    .map(([name, value]) => quoted(`--${name}=${value}`));
  if (!process.options && textAt(process.asked) && textAt(process.asked) !== "auto") flags.push(quoted("--region=" + textAt(process.asked)));
  if (address.startsWith("unix:contextune-run-")) flags.unshift(`-n ${process.world}`);
  const program = process.command ? textAt(process.command) : quoted(textAt(process.program) || "PROGRAM");
  return ["contextune run", ...flags, "--", program].join(" ");
}

function showEnvironment(holder, state) {
  const { job } = state;
  const process = job.raw.ranks[0];
  const command = commandOf(process);
  holder.append(make("h3", { id: "command" }, "The command"),
    make("pre", { class: "command", tabindex: "0", "aria-labelledby": "command" }, command), copyButton("Copy command", command));
  if (process.command && textAt(process.command).endsWith("...")) holder.append(make("p", { class: "muted" }, "The log holds only the beginning of it."));
  if (!process.command) holder.append(make("p", { class: "muted" }, "The log does not hold the arguments of the program, nor other options: add those that were given."));
  const same = (field) => new Set(job.raw.ranks.map((rank) => textAt(rank[field])));
  const all = (field) => [...same(field)].filter(Boolean).join("; ");
  const facts = [
    ["program", all("program")],
    ["GPU", all("gpu") + (process.sms ? `, ${process.sms} SMs` : "") + (textAt(process.capability) ? `, compute capability ${textAt(process.capability)}` : "")],
    ["driver", all("driver") + (job.simulated ? ", simulated" : "")],
    ["launches timed by", all("timer")],
    ["mode", all("mode")],
    ["regions asked for", all("asked")],
    ["options", (process.options || []).map(([name, value]) => `${textAt(name)}=${textAt(value)}`).join("  ")],
    ["ranks", job.ranks.length > 1 ? `${rangesText(job.ranks)} of ${process.world}` : ""],
    ["runs", shortened(all("run"), 200)],
    ["began", textAt(process.first)],
    ["last line", textAt(process.last)],
    ["launches outside every region", process.outside === undefined ? "" : grouped(process.outside)],
    ["contextune", all("version")],
    ["logs", data.folder],
    ["other runs in these logs", data.other_runs.join(" ")],
    ["lines that could not be read", data.bad_lines.count > 0 ? grouped(data.bad_lines.count) : ""],
  ].filter(([, text]) => text);
  holder.append(make("h3", {}, "Facts"), make("dl", { class: "facts" }, facts.map(([label, text]) => [make("dt", {}, label), make("dd", {}, text)])));
  if (data.bad_lines.lines.length)
    holder.append(make("details", {}, make("summary", {}, "Lines that could not be read"), make("ul", {}, data.bad_lines.lines.map((line) => make("li", { class: "mono" }, line)))));
}
