// The actors of an application that are in memory: who is busy, who waits, who was restarted, who refuses.

import { path } from "../lib/api.js";
import { count, duration } from "../lib/format.js";
import { link, route, setQuery } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Empty, Page, Time } from "../parts/basics.js";
import { RecordTable } from "../parts/table.js";

const EVERY_MS = 3000;
const KINDS = [["", "All kinds"], ["device", "Devices"], ["dataTable", "Data tables"], ["flow", "Workflows"], ["application", "The application"]];
const PLACES = { device: "devices", dataTable: "tables", flow: "workflows" };
const ORDERS = [["handled", "Busiest"], ["oldestMessageAgeMs", "Oldest message"], ["mailboxDepth", "Fullest mailbox"], ["refused", "Most refused"], ["restarts", "Most restarts"], ["lastUsed", "Last used"]];

export function Actors({ app }) {
  const { kind = "", sort = "handled" } = route.value.query;
  const figure = (name, label, show = count) => ({ label, sort: name, number: true, render: (row) => show(row[name]) });
  const place = (row) => (PLACES[row.kind] ? link("/applications", app, PLACES[row.kind], row.id) : undefined);
  return html`<${Page} title="Actors"
    lead="Each device, data table and workflow is an actor with a mailbox. This lists those in memory, since each was loaded. Idle actors are dropped; nothing is lost by that.">
    <${RecordTable} noun="actor" source=${path("applications", app, "actors")} params=${{ kind }} search=${null}
      sortField="handled" sortDirection="desc" every=${EVERY_MS} rowKey=${(row) => row.kind + row.id}
      empty=${html`<${Empty} title="No actor is in memory"><p>Actors are loaded when they get their first message.</p></${Empty}>`}
      filters=${html`
        <label class="row">Kind <select onChange=${(event) => setQuery({ kind: event.target.value, page: "" })}>
          ${KINDS.map(([value, text]) => html`<option value=${value} selected=${value === kind}>${text}</option>`)}</select></label>
        <span class="row" role="group" aria-label="Order">${ORDERS.map(([name, text]) => html`<button class=${sort === name ? "small primary" : "small"}
          aria-pressed=${sort === name ? "true" : "false"} onClick=${() => setQuery({ sort: name, direction: "desc", page: "" })}>${text}</button>`)}</span>`}
      columns=${[
        { label: "Actor", render: (row) => (place(row) ? html`<a href=${place(row)}>${row.name || row.id}</a>` : row.name || html`<code>${row.id}</code>`) },
        { label: "Kind", render: (row) => row.kind },
        figure("mailboxDepth", "Mailbox"),
        figure("oldestMessageAgeMs", "Oldest message", (ms) => (ms ? duration(ms) : "-")),
        figure("handled", "Handled"),
        figure("refused", "Refused"),
        figure("restarts", "Restarts"),
        figure("subscribers", "Streams"),
        { label: "Last used", sort: "lastUsed", render: (row) => html`<${Time} at=${row.lastUsed} age />` },
        { label: "Last error", render: (row) => (row.lastError ? html`<${Badge} tone="bad">${row.lastError}</${Badge}>` : html`<span class="quiet">none</span>`) },
      ]} />
  </${Page}>`;
}
