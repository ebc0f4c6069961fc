// What a run did, or a dry run: its steps, what debug nodes told, and its error.

import { duration, plural } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { Badge, Card } from "../../parts/basics.js";
import { Json } from "../../parts/json.js";
import { Table } from "../../parts/table.js";
import { outputName, partsOf, typeText } from "./shape.js";

const SHOWN_MAX = 200;

// The error in one sentence, with the node.
export function ErrorText({ error, href }) {
  const node = error.nodeId && (href ? html`<a href=${href(error.nodeId)}>${error.nodeLabel || error.nodeId}</a>` : error.nodeLabel || error.nodeId);
  return html`<div class="problem">${node ? html`The node ${node} failed` : "The run failed"} with ${error.name}: ${error.message}</div>`;
}

// path: [{nodeId, nodeType, nodeLabel, output, tookUs}]. href(step, position): what a step opens. current: a position.
export function Steps({ path, definition, error, href, current, title = "Path" }) {
  const parts = new Map(definition ? partsOf(definition).map((part) => [part.key, part]) : []);
  const last = path.length - 1;
  const columns = [
    { label: "Step", render: (step) => html`<span aria-current=${step.at === current ? "step" : undefined} class="flow-step">${step.at + 1}. ${step.nodeLabel || step.nodeId || typeText(step.nodeType)}</span>` },
    { label: "Type", render: (step) => html`<span class="nowrap">${typeText(step.nodeType)}</span>` },
    { label: "Output", render: (step) => {
      if (error && step.at === last && error.nodeId === step.nodeId) return html`<${Badge} tone="bad">failed</${Badge}>`;
      const part = parts.get(step.nodeId);
      if (step.output < 0 || (part && !part.to[step.output]?.length)) return "end";
      return (part && (outputName(part, step.output) || "next")) || String(step.output);
    } },
    { label: "Time", number: true, render: (step) => duration(step.tookUs / 1000) },
  ];
  const rows = path.slice(0, SHOWN_MAX).map((step, at) => ({ ...step, at }));
  return html`<${Card} flush title=${title}>
    ${rows.length ? html`<${Table} label=${title} columns=${columns} rows=${rows} rowKey=${(step) => step.at} href=${href && ((step) => href(step, step.at))} />`
      : html`<p class="empty quiet">No node was visited.</p>`}
    ${path.length > rows.length && html`<div class="table-foot">${plural(path.length - rows.length, "further step")}</div>`}
  </${Card}>`;
}

// What nodes ignored: [{nodeId, nodeLabel, nodeType, message, count}].
export function Ignored({ notes, href }) {
  if (!notes?.length) return null;
  return html`<${Card} title="Ignored"><div class="stack">
    ${notes.map((each) => html`<div><${Badge} tone="warn">${each.count} ×</${Badge}> <b>${href && each.nodeId ? html`<a href=${href(each.nodeId)}>${each.nodeLabel || each.nodeId}</a>` : each.nodeLabel || each.nodeId || typeText(each.nodeType)}</b> ${each.message}</div>`)}
  </div></${Card}>`;
}

export function Debug({ messages }) {
  if (!messages.length) return null;
  return html`<${Card} title="Messages of debug nodes"><div class="stack">
    ${messages.slice(0, SHOWN_MAX).map((each) => html`<div><${Badge} tone=${{ error: "bad", warn: "warn" }[each.level] || ""}>${each.level}</${Badge}>
      <b>${each.nodeLabel || each.nodeId}</b> ${each.message}<${Json} value=${each.value} /></div>`)}
  </div></${Card}>`;
}
