// Work that was not tuned, or not as asked, and what to do about it.

/// What befell many sites alike is one row.
function alikeTogether(troubles) {
  const rows = new Map();
  for (const one of troubles) {
    const key = [one.reason, one.region, one.text].join("\n");
    const row = rows.get(key) || { ...one, sites: [], count: 0, ranks: [] };
    rows.set(key, row);
    if (one.site) row.sites.push(textAt(one.site));
    row.count += one.count;
    row.ranks = [...new Set([...row.ranks, ...one.ranks])].sort((a, b) => a - b);
  }
  return [...rows.values()];
}

function showTroubles(holder, state) {
  const { job } = state;
  if (!job.raw.troubles.length) {
    holder.append(make("p", {}, "Everything that was asked for was tuned."));
    return;
  }
  const reason = (one) => data.reasons[textAt(one.reason)] || ["", "", textAt(one.reason) === "fault" ? "Correct what the sentence names." : ""];
  const several = job.ranks.length > 1;
  const rows = alikeTogether(job.raw.troubles);
  holder.append(sortedTable({
    id: "trouble-table",
    caption: "Reasons in the log's words",
    label: "Not tuned",
    search: rows.length > 3,
    rows,
    columns: [
      { label: "reason", head: true, value: (one) => textAt(one.reason), cell: (one) => make("code", { title: reason(one)[0] }, textAt(one.reason)) },
      { label: "region", value: (one) => textAt(one.region), cell: (one) => textAt(one.region) && nameOf(textAt(one.region), 28) },
      { label: "sites", value: (one) => one.sites.join(", "), class: "sites", cell: (one) => [
        one.sites.slice(0, 4).map((site, i) => [i > 0 && make("br"), nameOf(site, 36)]),
        one.sites.length > 4 && make("details", {}, make("summary", {}, `and ${one.sites.length - 4} more`),
          one.sites.slice(4).map((site, i) => [i > 0 && make("br"), nameOf(site, 36)]))] },
      { label: "times", number: true, down: true, value: (one) => one.count, cell: (one) => grouped(one.count) },
      several && { label: "ranks", class: "ranks", value: (one) => rangesText(one.ranks.map((rank) => job.ranks[rank])) },
      { label: "what happened", class: "text", value: (one) => one.text },
      { label: "what to do", class: "text", value: (one) => reason(one)[2] },
    ].filter(Boolean),
  }).element);
}
