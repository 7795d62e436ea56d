// Figures in words, as the command's own text has them.

const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

const threeDigits = (value) => {
  const size = Math.abs(value);
  return value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
};

function timeText(seconds) {
  if (!isKnown(seconds)) return "-";
  const size = Math.abs(seconds);
  if (size < 0.9995e-3) return threeDigits(seconds * 1e6) + " us";
  if (size < 0.9995) return threeDigits(seconds * 1e3) + " ms";
  return threeDigits(seconds) + " s";
}

const percentText = (share, digits = 1) => (isKnown(share) ? (share * 100).toFixed(digits) + " %" : "-");

/// "11.3 % less" than something.
function lessText(gain) {
  if (!isKnown(gain)) return "-";
  return percentText(Math.abs(gain)) + (gain >= 0 ? " less" : " more");
}

function bytesText(bytes) {
  if (!isKnown(bytes)) return "-";
  if (bytes < 1024) return countText(bytes, "byte", "bytes");
  let size = bytes;
  let unit = "";
  for (const larger of [" KiB", " MiB", " GiB", " TiB"]) {
    if (unit && size < 1023.5) break;
    size /= 1024;
    unit = larger;
  }
  return threeDigits(size) + unit;
}

const grouped = (count) => String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const countText = (count, one, many) => grouped(count) + " " + (count === 1 ? one : many);

/// Cut in its middle to at most `width` characters.
function shortened(text, width) {
  const characters = Array.from(text.length > 4 * width ? text.slice(0, 2 * width) + text.slice(-2 * width) : text);
  if (text.length <= width || characters.length <= width) return text;
  const tail = Math.floor((width - 2) / 2);
  return characters.slice(0, width - 2 - tail).join("") + ".." + characters.slice(characters.length - tail).join("");
}

/// "0-3, 7" for [0, 1, 2, 3, 7].
function rangesText(numbers) {
  const parts = [];
  for (let i = 0; i < numbers.length; ) {
    let last = i;
    while (last + 1 < numbers.length && numbers[last + 1] === numbers[last] + 1) ++last;
    parts.push(last > i ? numbers[i] + "-" + numbers[last] : String(numbers[i]));
    i = last + 1;
  }
  return parts.join(", ");
}

const ranksText = (ranks) => (ranks.length === 1 ? "rank " : "ranks ") + rangesText(ranks);

/// Compares names as people do: config-2 before config-10.
const nameOrder = new Intl.Collator("en", { numeric: true });
