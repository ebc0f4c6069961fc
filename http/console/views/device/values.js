// The newest value of each attribute of a device: with its unit, its age and a small chart of the last hours.

import { unitOf, valueText, withUnit } from "../../lib/format.js";
import { html, useState } from "../../lib/ui.js";
import { now, Time } from "../../parts/basics.js";
import { Sparkline } from "../../parts/sparkline.js";
import { RECENT_MS } from "./live_data.js";

export const CARDS_FIRST = 24;
const VALUE_CHARS = 120;
const LONG_CHARS = 14;

// live: of useLive. names: the attributes with a large chart, which toggle(name) changes; small: those with a small one.
export function Values({ attributes, live, names, small, toggle }) {
  const [all, setAll] = useState(false);
  const shown = all ? attributes : attributes.slice(0, CARDS_FIRST);
  const rest = attributes.length - shown.length;
  return html`<ul class="values" aria-label="Newest values">${shown.map((attribute) => html`<${Value} key=${attribute.name} ...${{ attribute, live, toggle }} small=${small.includes(attribute.name)} chosen=${names.includes(attribute.name)} />`)}</ul>
    ${rest > 0 && html`<div><button onClick=${() => setAll(true)}>Show ${rest} more</button></div>`}`;
}

// small: it has room for a small chart, also before that is loaded.
function Value({ attribute, live, small, chosen, toggle }) {
  const { name, description } = attribute;
  const newest = live.newest.get(name);
  const series = live.recent.get(name);
  const to = Math.max(now.value / 1000, series?.times.at(-1) || 0), from = to - RECENT_MS / 1000;
  series?.trim(from);
  return html`<li class="value-card" data-attribute=${name}>
    <div class="spread"><h3 class="break">${name}</h3>${hasChart(attribute) && html`<label class="quiet small-text"><input type="checkbox" aria-label=${`Chart of ${name}`} checked=${chosen} onChange=${() => toggle(name)} /> chart</label>`}</div>
    ${description && html`<p class="quiet small-text">${description}</p>`}
    <${Newest} newest=${newest} unit=${unitOf(attribute)} known=${Boolean(live.at)} />
    <p class="quiet small-text">${newest ? html`<${Time} at=${newest.time} age />` : live.at ? "never reported" : "…"}</p>
    ${small && html`<div class="small-chart">${series?.times.length > 1 && html`<${Sparkline} ...${{ from, to, times: series.times, values: series.values }} turn=${now.value} step=${attribute.dataType === "boolean"} label=${`${name} in the last six hours`} />`}</div>`}
  </li>`;
}

function Newest({ newest, unit, known }) {
  if (!newest) return html`<p class="figure quiet">${known ? "none" : "…"}</p>`;
  const text = valueText(newest.value);
  const short = text.slice(0, VALUE_CHARS) + (text.length > VALUE_CHARS ? "…" : "");
  return html`<p class=${text.length > LONG_CHARS ? "figure long" : "figure"}>${withUnit(short, unit)}</p>`;
}

export const hasChart = (attribute) => ["number", "boolean"].includes(attribute.dataType);
