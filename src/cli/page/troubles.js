// Work that was not tuned, or not as asked, and what to do about it.

function showTroubles(holder, state) {
  const { job } = state;
  if (!job.raw.troubles.length) {
    holder.append(make("p", {}, "Everything that was asked for was tuned."));
    return;
  }
  const reason = (one) => data.reasons[textAt(one.reason)] || ["", "", textAt(one.reason) === "fault" ? "Correct what the sentence names." : ""];
  const several = job.ranks.length > 1;
  holder.append(sortedTable({
    id: "trouble-table",
    caption: "Reasons in the log's words",
    label: "Not tuned",
    search: job.raw.troubles.length > 3,
    rows: job.raw.troubles,
    columns: [
      { label: "reason", head: true, value: (one) => textAt(one.reason), cell: (one) => make("code", { title: reason(one)[0] }, textAt(one.reason)) },
      { label: "where", value: (one) => [textAt(one.region), textAt(one.site)].filter(Boolean).join(", "),
        cell: (one) => [textAt(one.region), textAt(one.site)].filter(Boolean).map((name, i) => [i > 0 && ", ", nameOf(name, 36)]) },
      { label: "times", number: true, down: true, value: (one) => one.count, cell: (one) => grouped(one.count) },
      several && { label: "ranks", value: (one) => rangesText(one.ranks.map((rank) => job.ranks[rank])) },
      { label: "what happened", class: "text", value: (one) => one.text },
      { label: "what to do", class: "text", value: (one) => reason(one)[2] },
    ].filter(Boolean),
  }).element);
}
