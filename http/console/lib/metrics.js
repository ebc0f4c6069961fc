// The counters of `/metrics`, read from the text format of Prometheus, and what follows from two readings of them.

import { inTime, request } from "./api.js";
import { useEffect, useState } from "./ui.js";

const EVERY_MS = 3000;
const KEPT_MS = 600_000;
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

// {at (ms), values: Map of name -> [{labels, value}]}
export function parse(text, at) {
  const values = new Map();
  for (const line of text.split("\n")) {
    const found = line[0] === "#" ? null : LINE.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] || "").matchAll(LABEL)) labels[name] = value;
    const number = found[3] === "+Inf" ? Infinity : Number(found[3]);
    if (!values.has(found[1])) values.set(found[1], []);
    values.get(found[1]).push({ labels, value: number });
  }
  return { at, values };
}

const fits = (labels, wanted) => Object.entries(wanted).every(([name, value]) => labels[name] === value);

// The sum of the samples of a metric whose labels fit; 0 if there is none.
export function total(reading, name, wanted = {}) {
  return (reading.values.get(name) || []).reduce((sum, { labels, value }) => sum + (fits(labels, wanted) ? value : 0), 0);
}

// The largest of them: of several processes each has its own.
export function most(reading, name) {
  return (reading.values.get(name) || []).reduce((largest, { value }) => Math.max(largest, value), 0);
}

// {free, size}: of the disks of all processes, the one that has the least left.
export function fullestDisk(reading) {
  const free = reading.values.get("trunkline_disk_free_bytes") || [];
  const disks = (reading.values.get("trunkline_disk_size_bytes") || []).map(({ value }, at) => ({ free: free[at]?.value || 0, size: value }));
  return disks.sort((one, other) => one.free / one.size - other.free / other.size)[0] || { free: 0, size: 0 };
}

// What a counter grew by in a second, between two readings. A server that was started again begins at 0.
export function perSecond(before, after, name, wanted) {
  const grown = total(after, name, wanted) - total(before, name, wanted);
  const seconds = (after.at - before.at) / 1000;
  return seconds > 0 ? Math.max(0, grown) / seconds : null;
}

// The buckets of a histogram by their bounds, those of several processes together.
function byBound(reading, name, wanted) {
  const found = new Map();
  for (const { labels, value } of reading.values.get(name + "_bucket") || []) {
    if (fits(labels, wanted)) found.set(labels.le, (found.get(labels.le) || 0) + value);
  }
  return found;
}

// A quantile of what a histogram counted between two readings, in its unit; null if it counted nothing.
// Linear within a bucket, as `histogram_quantile` of Prometheus does.
export function quantile(before, after, name, share, wanted = {}) {
  const earlier = before ? byBound(before, name, wanted) : new Map();
  const buckets = [...byBound(after, name, wanted)]
    .map(([le, value]) => ({ bound: le === "+Inf" ? Infinity : Number(le), count: value - (earlier.get(le) || 0) }))
    .sort((one, other) => one.bound - other.bound);
  const all = buckets.at(-1)?.count || 0;
  if (all <= 0) return null;
  const rank = share * all;
  let low = 0, below = 0;
  for (const { bound, count } of buckets) {
    if (count >= rank) return bound === Infinity ? low : low + ((bound - low) * (rank - below)) / Math.max(count - below, 1e-9);
    low = bound;
    below = count;
  }
  return low;
}

// The readings of the last ten minutes, oldest first; one list for all views, so that changing the view keeps it.
const kept = [];

// {readings, error}: read every 3 s while a view shows them and the tab is seen.
export function useMetrics() {
  const [state, setState] = useState({ readings: [...kept] });
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0, reading = false;
    const read = async () => {
      clearTimeout(timer);
      if (document.hidden || reading) return;
      reading = true;
      try {
        const answer = await request("GET", "/metrics", { signal: inTime(abort.signal) });
        const last = kept.at(-1);
        const next = parse(await answer.text(), Date.now());
        if (last && total(next, "process_start_time_seconds") !== total(last, "process_start_time_seconds")) kept.length = 0;
        kept.push(next);
        while (kept[0].at < next.at - KEPT_MS) kept.shift();
        setState({ readings: [...kept] });
      } catch (error) {
        if (!abort.signal.aborted) setState({ readings: [...kept], error });
      }
      reading = false;
      if (!abort.signal.aborted) timer = setTimeout(read, EVERY_MS);
    };
    document.addEventListener("visibilitychange", read);
    read();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", read);
    };
  }, []);
  return state;
}

// The newest reading, and one of `seconds` before it or the oldest there is; null while there are not two.
export function lastSpan(readings, seconds) {
  const after = readings.at(-1);
  if (readings.length < 2) return null;
  const before = readings.find((each) => each.at >= after.at - seconds * 1000 && each !== after) || readings.at(-2);
  return { before, after };
}
