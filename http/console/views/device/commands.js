// Commands of a device: one is sent and its life is watched, and the log of all.

import { path, post } from "../../lib/api.js";
import { duration } from "../../lib/format.js";
import { useStream } from "../../lib/hooks.js";
import { html, useEffect } from "../../lib/ui.js";
import { Badge, Empty, Live, Loaded, Time } from "../../parts/basics.js";
import { Json } from "../../parts/json.js";
import { note, noted } from "../../parts/notes.js";
import { CommandForm } from "./command_form.js";
import { commandShapes } from "./command_shapes.js";
import { Log, useLog } from "./log.js";

const WATCH_MS = 1000;

export function CommandsTab({ app, device, record }) {
  const source = path("applications", app, "devices", device, "command");
  // Commands that wait change their status without an event, so the log is read again while there are any.
  const log = useLog(source, (entries) => (entries.some((each) => ["queued", "sent"].includes(each.status)) ? WATCH_MS : 0));
  const stream = useStream(path("applications", app, "devices", device, "commandStream"), { onEvent: log.reload, onReset: log.reload });
  const live = stream.state === "live";
  // A command may have been sent between the load of the log and the start of the stream.
  useEffect(() => { if (live) log.reload(); }, [live]);
  const send = async (body) => {
    await post(source, body);
    note(`The command ${body.name} is stored and sent.`);
    log.reload();
  };
  const again = async ({ name, payload }) => {
    if (await noted(post(source, { name, payload }), `The command ${name} is sent again.`)) log.reload();
  };
  return html`<${Loaded} data=${log}>${(entries) => html`
    <${CommandForm} key=${device} shapes=${commandShapes(record.tags, entries)} send=${send} />
    <${Log} title="Commands" noun="command" byTime=${false} log=${log} actions=${html`<${Live} stream=${stream} />`}
      columns=${[
        { label: "Time", render: (row) => html`<${Time} at=${row.time} />` },
        { label: "Command", render: (row) => html`<b>${row.name}</b>${row.payload !== undefined && html`<${Json} value=${row.payload} />`}` },
        { label: "What became of it", render: (row) => html`<${Life} command=${row} />` },
        { label: html`<span class="hidden-label">Again</span>`, render: (row) => html`<button class="small" data-write onClick=${() => again(row)}>Send again<span class="hidden-label"> ${row.name}</span></button>` },
      ]}
      empty=${html`<${Empty} title="No command was sent to this device">
        <p>Send one above. It is logged, and sent to the device over its connection, or when it connects. A tag of the device (or of its recipe) with the key <code>command</code> makes a form:
          <code>setTarget value:number mode:text</code> is the command setTarget with two fields.</p></${Empty}>`} />`}</${Loaded}>`;
}

// The life of a command in words. Only commands that wait for a connection have a status.
function Life({ command: { status, time, sentAt, acknowledgedAt, expiresAt } }) {
  const until = expiresAt && html`, expires <${Time} at=${expiresAt} age />`;
  if (status === "queued") return html`<${Badge} tone="warn">waiting</${Badge}> for the device to connect${until}`;
  if (status === "sent") return html`<${Badge} tone="accent">delivered</${Badge}> to its connection <${Time} at=${sentAt} age />, not acknowledged yet${until}`;
  if (status === "acknowledged") return html`<${Badge} tone="good">acknowledged</${Badge}> ${duration(Math.max(0, Date.parse(acknowledgedAt) - Date.parse(time)))} after it was sent`;
  if (status === "expired") return html`<${Badge} tone="bad">expired</${Badge}> <${Time} at=${expiresAt} />, ${sentAt ? "delivered, but not acknowledged" : "the device did not get it"}`;
  return html`<${Badge}>sent</${Badge}> <span class="quiet">not acknowledged: the device has no connection that does</span>`;
}
