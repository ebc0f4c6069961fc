// The range of time of a chart: the last minutes, hours or days, or two times. It is in the address.

import { localTime, timeStep } from "../../lib/format.js";
import { route, setQuery } from "../../lib/router.js";
import { html, useId, useState } from "../../lib/ui.js";
import { Problem } from "../../parts/basics.js";

const MINUTE_MS = 60_000;
const RANGES = [
  ["15m", "15 min", 15 * MINUTE_MS],
  ["1h", "1 h", 60 * MINUTE_MS],
  ["24h", "24 h", 1440 * MINUTE_MS],
  ["7d", "7 d", 7 * 1440 * MINUTE_MS],
  ["30d", "30 d", 30 * 1440 * MINUTE_MS],
];

// {key, fixed, spanMs, fromMs, toMs}: fixed from one time to another, or the last `spanMs`.
export function currentRange() {
  const { from, to, range } = route.value.query;
  const fromMs = Number(from), toMs = Number(to);
  if (from && to && toMs > fromMs) return { key: `${from}-${to}`, fixed: true, spanMs: toMs - fromMs, fromMs, toMs };
  const [key, , spanMs] = RANGES.find(([name]) => name === range) || RANGES[0];
  return { key, fixed: false, spanMs };
}

export const setRange = (fromMs, toMs) => setQuery({ from: Math.floor(fromMs), to: Math.ceil(toMs), range: "" }, { push: true });

export function RangeChoice() {
  const range = currentRange();
  const [own, setOwn] = useState(false);
  const choose = (name) => {
    setOwn(false);
    setQuery({ range: name, from: "", to: "" }, { push: true });
  };
  return html`<div class="row" role="group" aria-label="Range of time">
    ${RANGES.map(([name, text]) => html`<button class="small" aria-pressed=${range.key === name} onClick=${() => choose(name)}>${text}</button>`)}
    <button class="small" aria-pressed=${range.fixed} aria-expanded=${own} onClick=${() => setOwn(!own)}>${range.fixed ? "Own range" : "Own"}</button>
    ${own && html`<${OwnRange} range=${range} close=${() => setOwn(false)} />`}
  </div>`;
}

function OwnRange({ range, close }) {
  const id = useId();
  const [error, setError] = useState(null);
  // The chart is drawn again while somebody types: the fields begin with these times and keep what is typed.
  const [[from, to]] = useState(() => {
    const end = range.fixed ? range.toMs : Math.floor(Date.now() / 1000) * 1000;
    return [localTime(end - range.spanMs), localTime(end)];
  });
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const fromMs = new Date(given.get("from")).getTime(), toMs = new Date(given.get("to")).getTime();
    if (!(toMs > fromMs)) return setError({ message: "The first time must be before the second one." });
    setRange(fromMs, toMs);
    return close();
  };
  return html`<form class="row" onSubmit=${submit}>
    <label for=${id + "f"}>From</label><input id=${id + "f"} name="from" type="datetime-local" step=${timeStep(from, "1")} required defaultValue=${from} />
    <label for=${id + "t"}>to</label><input id=${id + "t"} name="to" type="datetime-local" step=${timeStep(to, "1")} required defaultValue=${to} />
    <button class="small primary">Show</button><${Problem} error=${error} /></form>`;
}
