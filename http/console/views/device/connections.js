// The connection of a device: its log, and a form that reports a change.

import { get, path, post } from "../../lib/api.js";
import { count } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Empty, Facts, Fresh, Problem, Time } from "../../parts/basics.js";
import { openForm } from "../../parts/form.js";
import { Connection } from "../devices/connection.js";
import { Log, useLog } from "./log.js";

const REPEAT_MS = 5000;
const WAITING = "…";
const FIELDS = [
  { name: "status", label: "Status", type: "select", options: ["connected", "disconnected"] },
  { name: "connectedAt", label: "Connected at", type: "time", hint: "Empty: now.", show: (values) => values.status === "connected" },
  { name: "disconnectedAt", label: "Disconnected at", type: "time", hint: "Empty: now.", show: (values) => values.status === "disconnected" },
  { name: "disconnectReason", label: "Reason", show: (values) => values.status === "disconnected" },
  { name: "ipAddress", label: "Network address" },
];

export function ConnectionsTab({ app, device, record, reload }) {
  const home = path("applications", app, "devices", device);
  const log = useLog(`${home}/logs`, REPEAT_MS);
  const actor = useData((signal) => get(`${home}/actor`, {}, { signal }), [home], { every: REPEAT_MS });
  const report = async () => {
    const done = await openForm("Report a change of the connection", { fields: FIELDS, button: "Report", submit: (values) => post(`${home}/setConnectionStatus`, values) });
    if (!done) return;
    reload();
    log.reload();
  };
  return html`
    <${Card} title="Connection" actions=${html`<${Fresh} data=${actor} /><button data-create onClick=${report}>Report a change</button>`}>
      <${Problem} error=${actor.error} retry=${actor.reload} />
      <${Facts} rows=${[
        ["Status", html`<${Connection} info=${record.connectionInfo} />`],
        ["Link", actor.value ? (actor.value.links ? html`<${Badge} tone="good">open</${Badge}>` : html`<span class="quiet">not open</span>`) : WAITING],
        ["Commands that wait", actor.value ? count(actor.value.commandsWaiting) : WAITING],
      ]} />
    </${Card}>
    <${Log} title="Connection log" noun="change" log=${log} byTime=${false}
      columns=${[
        { label: "Time", render: (row) => html`<${Time} at=${row.time} />` },
        { label: "Status", render: (row) => html`<${Badge} tone=${row.connected ? "good" : "warn"}>${row.connected ? "connected" : "disconnected"}</${Badge}>` },
        { label: "Reason", render: (row) => row.disconnectReason },
        { label: "From the device", number: true, render: (row) => row.messagesFromClient !== undefined && count(row.messagesFromClient) },
        { label: "To the device", number: true, render: (row) => row.messagesToClient !== undefined && count(row.messagesToClient) },
        { label: "Address", render: (row) => row.ipAddress },
      ]}
      empty=${html`<${Empty} title="No connection is logged" call=${{ method: "POST", path: `${home}/setConnectionStatus`, body: { status: "connected" } }}>
        <p>A connection by MQTT or the device link is logged by itself. A device that sends its states by calls keeps no connection: when it was last heard is above. A gateway reports those of others by a call.</p></${Empty}>`} />`;
}
