// The data of the page, and what is derived from them. Columns hold three characters a number; see columns.hpp.

let data = null;
/// Whether the page comes from a server that has newer data: programs may still run.
const isLive = document.documentElement.dataset.version !== "";
const textAt = (place) => data.strings[place];

const digitOf = new Uint8Array(128);
Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_").forEach((digit, value) => {
  digitOf[digit.charCodeAt(0)] = value;
});

const decoded = new Map();

function numbersOf(column) {
  let numbers = decoded.get(column);
  if (numbers) return numbers;
  numbers = new Uint32Array(column.length / 3);
  for (let i = 0; i < numbers.length; ++i) {
    const at = 3 * i;
    numbers[i] = (digitOf[column.charCodeAt(at)] << 12) | (digitOf[column.charCodeAt(at + 1)] << 6) |
      digitOf[column.charCodeAt(at + 2)];
  }
  decoded.set(column, numbers);
  return numbers;
}

const timeOf = (number) => (number === 0 ? NaN : 1e-9 * Math.pow(2, (number - 1) / 4096));

function timesOf(column) {
  const key = "t" + column;
  let times = decoded.get(key);
  if (!times) decoded.set(key, (times = Float64Array.from(numbersOf(column), timeOf)));
  return times;
}

const largest = (values) => values.reduce((most, one) => (one > most || !isKnown(most) ? one : most), NaN);
const smallest = (values) => values.reduce((least, one) => (one < least || !isKnown(least) ? one : least), NaN);

/// A site as the page asks for it; what takes time is made when it is asked for.
class Site {
  constructor(raw, region, place) {
    this.raw = raw;
    this.region = region;
    this.place = place;
    this.label = textAt(raw.label);
    this.name = textAt(raw.name);
    this.key = textAt(raw.key);
    this.provider = textAt(raw.provider);
    this.configs = numbersOf(raw.configs);
    this.winnerByRank = Array.from(numbersOf(raw.winners), (one) => one - 1);
    // The most ranks speak for all; ranks that tune together have the same anyway.
    const votes = new Map();
    for (const config of this.winnerByRank) if (config >= 0) votes.set(config, (votes.get(config) || 0) + 1);
    this.winner = votes.size ? [...votes].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0][0] : -1;
    this.winnerTimes = timesOf(raw.winner_times);
    this.defaultTimes = timesOf(raw.default_times);
    this.winnerTime = largest(this.winnerTimes);
    this.defaultTime = largest(this.defaultTimes);
    if (!isKnown(this.defaultTime)) this.defaultTime = this.medianOf(0);
    if (!isKnown(this.winnerTime) && this.winner >= 0) this.winnerTime = this.medianOf(this.winner);
    this.gain = this.winner >= 0 ? 1 - this.winnerTime / this.defaultTime : NaN;
    const first = this.winnerByRank.indexOf(this.winner);
    this.reason = first < 0 ? "" : textAt(raw.reasons[first]);
  }
  get others() {
    return this.winnerByRank.flatMap((one, rank) => (one >= 0 && one !== this.winner ? [rank] : []));
  }
  placeOf(config) {
    return this.configs.indexOf(config);
  }
  /// Smallest, lower quartile, median, upper quartile, largest.
  quantiles(place) {
    return timesOf(this.raw.quantiles).subarray(5 * place, 5 * place + 5);
  }
  medianOf(config) {
    const place = this.placeOf(config);
    return place < 0 ? NaN : this.quantiles(place)[2];
  }
  count(place) {
    return numbersOf(this.raw.counts)[place];
  }
  status(place) {
    const status = this.raw.statuses[place];
    if (!status) return "";
    const ranks = this.winnerByRank.length;
    return textAt(status[0]) + (ranks > 1 && status[1] > 0 ? " on " + countText(status[1], "rank", "ranks") : "");
  }
  /// Every sample of a config, ascending; null where the page has none.
  samples(place) {
    if (this.raw.samples === undefined) return null;
    if (!this.begins) {
      let begin = 0;
      this.begins = Array.from(numbersOf(this.raw.counts), (count) => (begin += count) - count);
    }
    const begin = this.begins[place];
    return timesOf(this.raw.samples).subarray(begin, begin + this.count(place));
  }
  get parameters() {
    return this.raw.parameters.map(([name]) => textAt(name));
  }
  value(parameter, place) {
    return textAt(numbersOf(this.raw.parameters[parameter][1])[place]);
  }
  /// "block=256 per_sm=4", of what varies alone.
  text(config) {
    const place = this.placeOf(config);
    if (place < 0) return "";
    const parts = [];
    this.parameters.forEach((name, i) => {
      const value = this.value(i, place);
      if (value !== "") parts.push(name + "=" + value);
    });
    return parts.length ? parts.join(" ") : config === 0 ? textAt(this.raw.default) : "";
  }
  /// Median of a rank; of one process alone that of all samples.
  medianOfRank(place, rank) {
    const ranks = this.winnerByRank.length;
    return ranks === 1 ? this.quantiles(place)[2] : timesOf(this.raw.medians)[place * ranks + rank] ?? NaN;
  }
  /// Places of configs, the fastest first and unmeasured ones last.
  get byTime() {
    if (!this.order) {
      const time = (place) => (isKnown(this.quantiles(place)[2]) ? this.quantiles(place)[2] : Infinity);
      this.order = Array.from(this.configs.keys()).sort((a, b) => time(a) - time(b) || this.configs[a] - this.configs[b]);
    }
    return this.order;
  }
}

class Region {
  constructor(raw, job) {
    this.raw = raw;
    this.job = job;
    this.name = textAt(raw.name);
    this.sites = raw.sites.map((site, place) => new Site(site, this, place));
    this.isFound = raw.found.length > 0 || raw.submissions.length > 0;
  }
}

let jobs = [];

/// Takes the data that are drawn from now on.
function load(raw) {
  data = raw;
  decoded.clear();
  jobs = data.jobs.map(jobOf);
}

function jobOf(raw) {
  const job = {
    raw,
    ranks: raw.ranks.map((rank) => rank.rank),
    simulated: raw.ranks.some((rank) => rank.simulated),
    together: raw.together,
  };
  job.regions = raw.regions.map((region) => new Region(region, job));
  return job;
}

load(JSON.parse(document.getElementById("data").textContent));
