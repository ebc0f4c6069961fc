// A small chart without axes and labels, which shows how a value went; its numbers stand beside it.

import { html, useMemo } from "../lib/ui.js";
import { gapsOf } from "./gaps.js";

const WIDTH = 200, HEIGHT = 40, PAD = 3;

// times in s, values: numbers; from, to: the ends of the time in s; step: values last until the next; turn: the line is
// made anew when this changes, since a live series keeps its arrays.
export function Sparkline({ times, values, from, to, step = false, label, turn }) {
  const line = useMemo(() => lineOf(times, values, from, to, step), [times, turn, step]);
  return html`<svg class="small-line" role="img" aria-label=${label} viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none">
    <path d=${line} fill="none" vector-effect="non-scaling-stroke" /></svg>`;
}

function lineOf(times, values, from, to, step) {
  if (!times.length) return "";
  const breaks = new Set(gapsOf(times, values).map(([, after]) => after));
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const x = (time) => (((time - from) / (to - from)) * WIDTH).toFixed(1);
  const y = (value) => (high > low ? HEIGHT - PAD - ((value - low) / (high - low)) * (HEIGHT - 2 * PAD) : HEIGHT / 2).toFixed(1);
  let line = "", before = "";
  times.forEach((time, at) => {
    if (time < from) return;
    const place = `${x(time)} ${y(values[at])}`;
    if (!line || breaks.has(time)) line += `M${place}h.1`; // a value alone is a dot
    else line += step ? `L${x(time)} ${before}L${place}` : `L${place}`;
    before = y(values[at]);
  });
  return line;
}
