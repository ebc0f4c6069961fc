// The actor of a device: what waits for it, what it did, and what its throttles leave.

import { get, path } from "../../lib/api.js";
import { count, duration } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { html } from "../../lib/ui.js";
import { Card, Fresh, Loaded, Notice, Tile, Time } from "../../parts/basics.js";
import { Table } from "../../parts/table.js";

const REPEAT_MS = 2000;

export function ActorTab({ app, device }) {
  const home = path("applications", app, "devices", device);
  const data = useData((signal) => get(`${home}/actor`, {}, { signal }), [home], { every: REPEAT_MS });
  return html`<${Loaded} data=${data}>${(actor) => html`
    <${Card} title="Actor" actions=${html`<${Fresh} data=${data} />`}>
      ${!actor.active && html`<${Notice}>The actor is not in memory: nothing has used the device for a while. The next message starts it.</${Notice}>`}
      <div class="tiles">
        <${Tile} label="Messages that wait" value=${count(actor.mailboxDepth)} detail=${`the oldest for ${duration(actor.oldestMessageAgeMs)}`} tone=${actor.mailboxDepth ? "warn" : ""} />
        <${Tile} label="Handled" value=${count(actor.handled)} detail=${html`used <${Time} at=${actor.lastUsed} age />`} />
        <${Tile} label="Refused" value=${count(actor.refused)} detail="because its mailbox was full" tone=${actor.refused ? "bad" : ""} />
        <${Tile} label="Restarts" value=${count(actor.restarts)} detail=${actor.lastError ? `last error: ${actor.lastError}` : "no error"} tone=${actor.restarts ? "bad" : ""} />
        <${Tile} label="Streams" value=${count(actor.subscribers)} detail=${actor.links ? "and an open link" : "and no link"} />
        <${Tile} label="Commands that wait" value=${count(actor.commandsWaiting)} detail="to be acknowledged" />
      </div>
    </${Card}>
    <${Card} flush title="Throttles">
      <${Table} label="Throttles" rows=${actor.throttles} rowKey=${(row) => row.bucket} columns=${[
        { label: "Bucket", render: (row) => html`<code>${row.bucket}</code>` },
        { label: "Left", render: (row) => html`<span class="nowrap">${count(row.remaining)} of ${count(row.limit)}</span>${" "}
          <meter aria-label=${`Left of ${row.bucket}`} min="0" max=${row.limit} low=${row.limit / 5} value=${row.remaining}></meter>` },
        { label: "In any", render: (row) => duration(row.windowSeconds * 1000) },
        { label: "Next is free in", render: (row) => (row.resetSeconds ? duration(row.resetSeconds * 1000) : "now") },
        { label: "For each", render: (row) => row.per },
      ]} />
    </${Card}>`}</${Loaded}>`;
}
