// Commands of a device: one is sent and its life is watched, and the log of all.

import { path, post } from "../../lib/api.js";
import { useStream } from "../../lib/hooks.js";
import { html, useEffect } from "../../lib/ui.js";
import { Badge, Card, Empty, Live, Time } from "../../parts/basics.js";
import { Form } from "../../parts/form.js";
import { Json } from "../../parts/json.js";
import { note } from "../../parts/notes.js";
import { Log, useLog } from "./log.js";

const WATCH_MS = 1000;
const TONES = { queued: "warn", sent: "accent", acknowledged: "good", expired: "bad" };
const FIELDS = [
  { name: "name", label: "Name", required: true, placeholder: "switch" },
  { name: "payload", label: "Payload", type: "json", rows: 3, placeholder: '{"on": true}', hint: "Any JSON." },
  { name: "ttlSeconds", label: "Time to live in seconds", type: "number", hint: "It waits so long for a device with a link. Empty: until it is acknowledged." },
];

export function CommandsTab({ app, device }) {
  const source = path("applications", app, "devices", device, "command");
  // Commands that wait change their status without an event, so the log is read again while there are any.
  const log = useLog(source, (entries) => (entries.some((each) => ["queued", "sent"].includes(each.status)) ? WATCH_MS : 0));
  const stream = useStream(path("applications", app, "devices", device, "commandStream"), { onEvent: log.reload, onReset: log.reload });
  const live = stream.state === "live";
  // A command may have been sent between the load of the log and the start of the stream.
  useEffect(() => { if (live) log.reload(); }, [live]);
  const send = async (values) => {
    await post(source, values);
    note(`The command ${values.name} is stored and sent.`);
    log.reload();
  };
  return html`
    <${Card} title="Send a command"><${Form} fields=${FIELDS} submit=${send} button="Send" /></${Card}>
    <${Log} title="Commands" noun="command" byTime=${false} log=${log} actions=${html`<${Live} stream=${stream} />`}
      columns=${[
        { label: "Time", render: (row) => html`<${Time} at=${row.time} />` },
        { label: "Name", render: (row) => html`<b>${row.name}</b>` },
        { label: "Payload", render: (row) => row.payload !== undefined && html`<${Json} value=${row.payload} />` },
        { label: "Status", render: (row) => html`<${Status} command=${row} />` },
        { label: "Sent to the link", render: (row) => row.sentAt && html`<${Time} at=${row.sentAt} />` },
        { label: "Ended", render: ended },
        { label: "Number", number: true, render: (row) => row.id },
      ]}
      empty=${html`<${Empty} title="No command was sent to this device" call=${{ method: "POST", path: source, body: { name: "switch", payload: { on: true } } }}>
        <p>A command is logged and sent to the open streams of the device and over its link. Send one above, or by a call:</p></${Empty}>`} />`;
}

// Only commands that wait for a link have a status.
const Status = ({ command }) => (command.status
  ? html`<${Badge} tone=${TONES[command.status]}>${command.status}</${Badge}>`
  : html`<span class="quiet" title="The device has no link, so nothing acknowledges the command.">logged</span>`);

function ended(row) {
  if (row.acknowledgedAt) return html`<span class="nowrap">acknowledged <${Time} at=${row.acknowledgedAt} /></span>`;
  if (!row.expiresAt) return undefined;
  return html`<span class="nowrap">${row.status === "expired" ? "expired" : "expires"} <${Time} at=${row.expiresAt} age=${row.status !== "expired"} /></span>`;
}
