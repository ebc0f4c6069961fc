// A device live: the newest value of each attribute, and charts of some of them.

import { path } from "../../lib/api.js";
import { unitOf, valueText, withUnit } from "../../lib/format.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Card, Empty, Live, now, Problem } from "../../parts/basics.js";
import { Chart } from "../../parts/chart.js";
import uPlot from "../../vendor/uplot.mjs";
import { declareAttribute } from "./attributes.js";
import { useLive } from "./live_data.js";
import { currentRange, RangeChoice, setRange } from "./range.js";
import { CARDS_FIRST, hasChart, Values } from "./values.js";

const CHARTS_MAX = 8;
const CHARTS_FIRST = 4;
const HEIGHT = 170;
const ONE_HEIGHT = 300;

export function LiveTab({ app, device, record, reload }) {
  const range = currentRange();
  const names = charted(record);
  const small = record.attributes.filter(hasChart).slice(0, CARDS_FIRST).map((each) => each.name);
  const live = useLive({ app, device, names, small, range });
  const source = path("applications", app, "devices", device);
  if (!record.attributes.length) {
    return html`<${Empty} title="This device declares no attributes" call=${{ method: "POST", path: `${source}/attributes`, body: { name: "temperature", dataType: "number" } }}>
      <p>A device reports values of the attributes that it declares.</p>
      <div><button class="primary" data-create onClick=${() => declareAttribute(source, reload)}>Declare an attribute</button></div></${Empty}>`;
  }
  const silent = live.at && !live.newest.size;
  if (silent) return html`<${Card} title="Newest values" actions=${html`<${Live} stream=${live.stream} />`}><${NoStates} app=${app} device=${device} /></${Card}>`;
  return html`
    <${Card} title="Newest values" actions=${html`<${Live} stream=${live.stream} />`}>
      <${Problem} error=${live.error} retry=${live.reload} />
      <${Values} ...${{ live, names, small }} attributes=${record.attributes} toggle=${(name) => toggle(names, name)} />
    </${Card}>
    <${Card} title="Charts" actions=${html`${names.length > 1 && html`<${OneChoice} />`}<${RangeChoice} />`}>
      <${Charts} ...${{ names, range, live, record }} />
    </${Card}>`;
}

function toggle(names, name) {
  const changed = names.includes(name) ? names.filter((each) => each !== name) : [...names, name].slice(-CHARTS_MAX);
  setQuery({ attributes: changed.length ? changed.join(",") : "-" });
}

function Charts({ names, range, live, record }) {
  if (!names.length) {
    return html`<p class="quiet">${record.attributes.some(hasChart)
      ? `No attribute is chosen. Choose up to ${CHARTS_MAX} of the values above.`
      : "None of the attributes is a number or a boolean. These have charts."}</p>`;
  }
  const toS = range.fixed ? range.toMs / 1000 : Math.max(now.value / 1000, ...names.map((name) => live.series.get(name)?.times.at(-1) || 0));
  const shown = [toS - range.spanMs / 1000, toS];
  const lines = names.map((name) => {
    const series = live.series.get(name);
    if (!range.fixed) series?.trim(shown[0]);
    const attribute = record.attributes.find((each) => each.name === name);
    const newest = live.newest.get(name), unit = unitOf(attribute);
    const title = html`<h3 key=${name}>${name} <span class="quiet">${newest && withUnit(valueText(newest.value), unit)}</span></h3>`;
    return { name, series, step: attribute?.dataType === "boolean", unit: unit && `\u00a0${unit}`, title };
  });
  const common = { range: shown, onSelect: (from, to) => setRange(from * 1000, to * 1000) };
  const none = html`<p class="chart-empty">${live.loading ? "Loading." : "No values in this range."}</p>`;
  return html`<p class="quiet">Drag over a chart to show a part of its time.</p>
    ${inOne() && names.length > 1 ? html`<${One} ...${{ lines, common, none }} />` : html`<div class="charts">
      ${lines.map(({ name, series, step, unit, title }) => html`<div key=${name} data-points=${series?.times.length}>${title}
        ${series?.times.length
          ? html`<${Chart} label=${name} height=${HEIGHT} sync="device" unit=${unit} series=${[{ name, step }]} data=${[series.times, series.values]} ...${common} />`
          : none}
      </div>`)}</div>`}`;
}

// All attributes in one chart. Of two, the second has an axis of its own on the right; of more, booleans beside numbers have it.
function One({ lines, common, none }) {
  const filled = lines.filter(({ series }) => series?.times.length);
  const numbers = filled.some(({ step }) => !step);
  const series = filled.map(({ name, step, unit }, at) => {
    const right = filled.length === 2 ? at === 1 : step && numbers;
    return { name: right ? `${name} (right)` : name, unit, step, right };
  });
  const data = filled.map((each) => [each.series.times, each.series.values]);
  return html`<div class="row">${lines.map(({ title }) => title)}</div>
    ${filled.length ? html`<${Chart} label="Attributes" height=${ONE_HEIGHT} series=${series} data=${uPlot.join(data)} ...${common} />` : none}`;
}

const inOne = () => route.value.query.charts === "one";

const OneChoice = () => html`<button class="small" aria-pressed=${inOne()} onClick=${() => setQuery({ charts: inOne() ? "" : "one" })}>One chart</button>`;

const NoStates = ({ app, device }) => html`<${Empty} title="This device has not reported yet">
  <p>Values appear here as soon as a state arrives.</p>
  <div class="row" data-write><a class="button primary" href=${link("/applications", app, "devices", device, "connect")}>Connect this device</a>
    <a href=${link("/applications", app, "devices", device, "states")}>Send a state from here</a></div></${Empty}>`;

// The attributes with charts: those of the address that are declared, else the first numbers, else the first booleans.
function charted(record) {
  const chosen = route.value.query.attributes;
  const possible = record.attributes.filter(hasChart);
  if (chosen) {
    const names = chosen.split(",");
    return possible.map((each) => each.name).filter((name) => names.includes(name)).slice(0, CHARTS_MAX);
  }
  const numbers = possible.filter((each) => each.dataType === "number");
  return (numbers.length ? numbers : possible).slice(0, CHARTS_FIRST).map((each) => each.name);
}
