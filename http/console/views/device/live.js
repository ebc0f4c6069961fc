// A device live: charts of its attributes, and the newest value of each.

import { path, post } from "../../lib/api.js";
import { valueText } from "../../lib/format.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Card, Empty, Live, now, Problem, Time } from "../../parts/basics.js";
import { Chart, joined } from "../../parts/chart.js";
import { openForm } from "../../parts/form.js";
import { Table } from "../../parts/table.js";
import { attributeFields, editAttribute, removeAttribute } from "./attributes.js";
import { useLive } from "./live_data.js";
import { currentRange, RangeChoice, setRange } from "./range.js";

const CHARTS_MAX = 8;
const CHARTS_FIRST = 4;
const HEIGHT = 170;
const ONE_HEIGHT = 300;
const VALUE_CHARS = 200;

export function LiveTab({ app, device, record, reload }) {
  const range = currentRange();
  const names = charted(record);
  const live = useLive({ app, device, names, range });
  const source = path("applications", app, "devices", device);
  const both = () => {
    reload();
    live.reload(); // the newest values go with the names of the attributes
  };
  const declare = async () => {
    if (await openForm("Declare an attribute", { fields: attributeFields(), button: "Declare", submit: (values) => post(`${source}/attributes`, values) })) both();
  };
  if (!record.attributes.length) {
    return html`<${Empty} title="This device declares no attributes" call=${{ method: "POST", path: `${source}/attributes`, body: { name: "temperature", dataType: "number" } }}>
      <p>A device reports values of the attributes that it declares.</p>
      <div><button class="primary" data-create onClick=${declare}>Declare an attribute</button></div></${Empty}>`;
  }
  const silent = live.at && !live.newest.size;
  return html`
    <${Card} title="Charts" actions=${html`<${Live} stream=${live.stream} />${names.length > 1 && html`<${OneChoice} />`}<${RangeChoice} />`}>
      <${Problem} error=${live.error} retry=${live.reload} />
      ${silent ? html`<${NoStates} source=${source} attribute=${record.attributes[0]} />` : html`<${Charts} ...${{ names, range, live, record }} />`}
    </${Card}>
    <${Card} flush title="Attributes" actions=${html`<button data-create onClick=${declare}>Declare an attribute</button>`}>
      <${Table} label="Attributes" rowKey=${(row) => row.name} columns=${columns({ names, live, source, reload: both })} rows=${record.attributes} />
    </${Card}>`;
}

function Charts({ names, range, live, record }) {
  if (!names.length) {
    return html`<p class="quiet">${record.attributes.some(hasChart)
      ? `No attribute is chosen. Choose up to ${CHARTS_MAX} in the table below.`
      : "None of the attributes is a number or a boolean. These have charts."}</p>`;
  }
  const toS = range.fixed ? range.toMs / 1000 : Math.max(now.value / 1000, ...names.map((name) => live.series.get(name)?.times.at(-1) || 0));
  const shown = [toS - range.spanMs / 1000, toS];
  const lines = names.map((name) => {
    const series = live.series.get(name);
    if (!range.fixed) series?.trim(shown[0]);
    const step = record.attributes.find((each) => each.name === name)?.dataType === "boolean";
    const newest = live.newest.get(name);
    return { name, series, step, title: html`<h3 key=${name}>${name} <span class="quiet">${newest && valueText(newest.value)}</span></h3>` };
  });
  const common = { range: shown, onSelect: (from, to) => setRange(from * 1000, to * 1000) };
  const none = html`<p class="chart-empty">${live.loading ? "Loading." : "No values in this range."}</p>`;
  return html`<p class="quiet">Drag over a chart to show a part of its time.</p>
    ${inOne() && names.length > 1 ? html`<${One} ...${{ lines, common, none }} />` : html`<div class="charts">
      ${lines.map(({ name, series, step, title }) => html`<div key=${name} data-points=${series?.times.length}>${title}
        ${series?.times.length
          ? html`<${Chart} label=${name} height=${HEIGHT} sync="device" series=${[{ name, step }]} data=${[series.times, series.values]} ...${common} />`
          : none}
      </div>`)}</div>`}`;
}

// All attributes in one chart. Of two, the second has an axis of its own on the right; of more, booleans beside numbers have it.
function One({ lines, common, none }) {
  const filled = lines.filter(({ series }) => series?.times.length);
  const numbers = filled.some(({ step }) => !step);
  const series = filled.map(({ name, step }, at) => {
    const right = filled.length === 2 ? at === 1 : step && numbers;
    return { name: right ? `${name} (right)` : name, step, right };
  });
  const data = filled.map((each) => [each.series.times, each.series.values]);
  return html`<div class="row">${lines.map(({ title }) => title)}</div>
    ${filled.length ? html`<${Chart} label="Attributes" height=${ONE_HEIGHT} series=${series} data=${joined(data)} ...${common} />` : none}`;
}

const inOne = () => route.value.query.charts === "one";

const OneChoice = () => html`<button class="small" aria-pressed=${inOne()} onClick=${() => setQuery({ charts: inOne() ? "" : "one" })}>One chart</button>`;

const NoStates = ({ source, attribute }) => html`<${Empty} title="This device has not reported yet"
  call=${{ method: "POST", path: `${source}/state`, body: { data: { [attribute.name]: { number: 21.5, boolean: true }[attribute.dataType] ?? "text" } } }}>
  <p>Values appear here as soon as a state arrives. <a href=${link(route.value.path.replace(/\/live$/, ""), "states")}>Send a state</a> from here, or by a call:</p></${Empty}>`;

function columns({ names, live, source, reload }) {
  const toggle = (name) => {
    const changed = names.includes(name) ? names.filter((each) => each !== name) : [...names, name].slice(-CHARTS_MAX);
    setQuery({ attributes: changed.length ? changed.join(",") : "-" });
  };
  return [
    { label: "Name", render: (row) => html`<b>${row.name}</b>${row.description && html`<div class="quiet">${row.description}</div>`}` },
    { label: "Newest value", render: (row) => html`<${Newest} newest=${live.newest.get(row.name)} known=${Boolean(live.at)} />` },
    { label: "Reported", render: (row) => (live.at || live.newest.has(row.name) ? html`<${Time} at=${live.newest.get(row.name)?.time} age />` : html`<span class="quiet">…</span>`) },
    { label: "Type", render: (row) => row.dataType },
    { label: "Chart", render: (row) => html`<input type="checkbox" aria-label=${`Chart of ${row.name}`} disabled=${!hasChart(row)} checked=${names.includes(row.name)} onChange=${() => toggle(row.name)} />` },
    { label: html`<span class="hidden-label">Changes</span>`, render: (row) => html`<span class="row"><button class="small" onClick=${() => editAttribute(source, row, reload)}>Change<span class="hidden-label"> ${row.name}</span></button>
      <button class="small danger" onClick=${() => removeAttribute(source, row, reload)}>Delete<span class="hidden-label"> ${row.name}</span></button></span>` },
  ];
}

function Newest({ newest, known }) {
  if (!newest) return html`<span class="quiet">${known ? "none" : "…"}</span>`;
  const text = valueText(newest.value);
  return html`<span class="mono">${text.slice(0, VALUE_CHARS)}${text.length > VALUE_CHARS && "…"}</span>`;
}

const hasChart = (attribute) => ["number", "boolean"].includes(attribute.dataType);

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
