// One block: its title, and the parts that the server gives for it.

import { count, numberText, valueText } from "../../lib/format.js";
import { link } from "../../lib/router.js";
import { h, html } from "../../lib/ui.js";
import { Badge, Problem, Time } from "../../parts/basics.js";
import { Markdown, Outside } from "../../parts/markdown.js";
import { Table } from "../../parts/table.js";
import { Bars, Gauge, Graph, Pie, Places, Timeline } from "./drawings.js";
import { PlaceMap } from "./map/map.js";

const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });

// What a person would expect of such a block, and the console does not do.
const NOT_DRAWN = {
  "custom-chart": "The chart of this block is a Vega program, which the console does not run. These are the results of its queries.",
  "custom-html": "The page of this block is HTML of its own, which the console does not run. These are the results of its queries.",
  heatmap: "The places are drawn as points, not as areas of colour.",
  iframe: "This block is a page of another site, which the console does not load.",
  "image-overlay": "The values are listed below the picture, not drawn on it.",
  input: "The controls are shown with their values; the console does not send them.",
};

// editing: attributes of a block that can be moved, whose content is then only to look at; tools: its buttons.
export function Block({ block, data, failed, rows, px, place, app, editing, tools }) {
  const title = data?.title ?? block.title ?? "";
  const name = title || block.blockType;
  const config = block.config || {};
  const address = linkOf(block.applicationId || app);
  const body = editing ? { inert: true } : { tabindex: "0", role: "group", "aria-label": `What ${name} shows` };
  return html`<section class="card board-block" style=${place} aria-label=${name} ...${editing}>
    <div class="spread">${editing && html`<span class="board-grip" data-grip aria-hidden="true"></span>`}<h2>${title}</h2>${tools && html`<span class="board-tools">${tools}</span>`}</div>
    ${data?.description && html`<p class="quiet">${data.description}</p>`}
    <div class="board-body" ...${body}>
      ${data ? html`<${Content} type=${block.blockType} data=${data} name=${name} ...${{ config, rows, px, address }} />` : !failed && html`<p class="quiet" role="status">Loading.</p>`}
    </div>
    ${editing && html`<span class="board-corner" data-resize aria-hidden="true"></span>`}
  </section>`;
}

// The page of a record of an application, by the kind and the id; undefined where there is none.
function linkOf(app) {
  const places = { device: "devices", event: "events", flow: "workflows", dashboard: "dashboards" };
  return (kind, id) => (app && places[kind] ? link("/applications", app, places[kind], id) : undefined);
}

function Content({ type, data, name, config, rows, px, address }) {
  if (data.problem) return html`<${Problem} error=${{ message: data.problem }} />`;
  const note = NOT_DRAWN[type];
  // A table beside a drawing has the same values.
  const drawn = data.parts.some((part) => part.kind === "chart" || part.kind === "places");
  return html`${data.parts.map((part) => html`<${Part} ...${{ part, type, name, config, rows, px, address, folded: drawn && part.kind === "table" }} />`)}
    ${note && html`<p class="quiet">${note}</p>`}`;
}

function Part({ part, type, name, config, rows, px, address, folded }) {
  switch (part.kind) {
    case "chart": return h(DRAWINGS[part.type], { chart: part, name, config, rows, px });
    case "places": return html`<${PlaceMap} ...${{ part, name, config, address }} />`;
    case "table": return folded
      ? html`<details><summary>The values</summary><${Rows} part=${part} name=${name} address=${address} /></details>`
      : html`<${Rows} part=${part} name=${name} address=${address} />`;
    case "value": return html`<div class="board-value"><span class="figure">${typeof part.value === "number" ? numberText(part.value, { ...config, unit: part.unit }) : html`<${Cell} value=${part.value} />`}</span>
      <span class="quiet">${part.label}${part.at && html`, <${Time} at=${part.at} age />`}</span></div>`;
    case "status": return html`<div class="board-status" style=${{ borderColor: CSS.supports("color", part.color) ? part.color : "var(--line)" }}><${Markdown} text=${part.text} /></div>`;
    case "address": return html`<${Address} part=${part} />`;
    default: return type === "section-header" ? html`<${Markdown} text=${part.text} />` : html`<p class="quiet board-text">${part.text}</p>`;
  }
}

const DRAWINGS = { graph: Graph, timeline: Timeline, bar: Bars, pie: Pie, gauge: Gauge, map: PlaceMap, plane: Places };

function Rows({ part, name, address }) {
  const at = (row) => part.rows.indexOf(row);
  const href = part.ids && address?.(part.of, part.ids[0]) ? (row) => address(part.of, part.ids[at(row)]) : undefined;
  const columns = part.columns.map((label, column) => ({
    label: label || "Name",
    number: part.rows.every((row) => row[column] === null || typeof row[column] === "number") && part.rows.some((row) => row[column] !== null),
    render: (row) => html`<${Cell} value=${row[column]} />`,
  }));
  const left = part.total - part.rows.length;
  return html`<${Table} label=${`Values of ${name}`} columns=${columns} rows=${part.rows} rowKey=${at} href=${href} />
    ${left > 0 && html`<p class="quiet">The first ${count(part.rows.length)} of ${count(part.total)} are shown.</p>`}`;
}

const TONES = {
  critical: "bad", error: "bad", warning: "warn", info: "accent", connected: "good", reporting: "good", disconnected: "warn", silent: "bad", new: "accent", resolved: "good",
};

function Cell({ value }) {
  if (value === null) return html`<span class="quiet">-</span>`;
  if (value?.kind === "time") return html`<${Time} at=${value.time} />`;
  if (value?.kind === "share") return percent.format(value.share);
  if (TONES[value]) return html`<${Badge} tone=${TONES[value]}>${value}</${Badge}>`;
  return valueText(value);
}

// A picture that is in the dashboard or on this server is shown; nothing is loaded from elsewhere.
function Address({ part }) {
  const { label, url } = part;
  const own = /^data:image\//i.test(url) || /^\/(?![/\\])/.test(url) || url.startsWith(location.origin + "/");
  if (label === "Picture" && own) return html`<img class="board-picture" src=${url} alt="" />`;
  if (url.startsWith("data:")) return html`<p class="quiet">The picture has a form that the console does not show.</p>`;
  return html`<p class="break">${label}: <${Outside} url=${url}>${url}</${Outside}></p>
    ${label === "Picture" && html`<p class="quiet">It is not shown, because the console loads nothing from other sites.</p>`}`;
}
