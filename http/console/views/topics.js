// Topics: what is published in the application now, a form to publish, and the MQTT clients that are connected. Messages
// are kept nowhere, so the view shows what comes while it is open.

import { get, path, post } from "../lib/api.js";
import { count } from "../lib/format.js";
import { useData, useFrame, useStream } from "../lib/hooks.js";
import { link, route, setQuery } from "../lib/router.js";
import { html, useRef, useState } from "../lib/ui.js";
import { Calls, Card, Live, Loaded, Page, Time } from "../parts/basics.js";
import { Form } from "../parts/form.js";
import { note } from "../parts/notes.js";
import { Table } from "../parts/table.js";

const SHOWN_MAX = 200;
const EVERYTHING = "#";
const CLIENTS_EVERY_MS = 5000;

export function Topics({ app }) {
  const topic = route.value.query.topic || EVERYTHING;
  const source = path("applications", app, "mqttPublishMessage");
  const publish = async (values) => {
    await post(source, values);
    note(`Published to ${values.topic}.`);
  };
  return html`<${Page} title="Topics" lead="Messages with topics, as in MQTT. Workflows are started by them, and publish them.">
    <${Messages} key=${topic} app=${app} topic=${topic} />
    <${Card} data-write title="Publish"><${Form} button="Publish" submit=${publish} fields=${[
      { name: "topic", label: "Topic", required: true, placeholder: "barn/2/temperature" },
      { name: "message", label: "Message", type: "longtext", required: true, rows: 3 },
    ]} /></${Card}>
    <${Clients} app=${app} />
    <${Sleepers} app=${app} />
    <${Card} title="By a program"><${Calls} method="POST" path=${source} body=${{ topic: "barn/2/temperature", message: "21.5" }} /></${Card}>
  </${Page}>`;
}

// The last messages of the topics, the newest first.
function Messages({ app, topic }) {
  const messages = useRef([]);
  const total = useRef(0);
  const [paused, setPaused] = useState(false);
  const [, draw] = useState(0);
  const redraw = useFrame(() => draw((before) => before + 1));
  const stream = useStream(path("applications", app, "mqttSubscriptionStream"), {
    query: { topic },
    onEvent: (message) => {
      total.current += 1;
      if (paused) return;
      messages.current = [{ ...message, number: total.current, at: Date.now() }, ...messages.current.slice(0, SHOWN_MAX - 1)];
      redraw();
    },
  });
  const clear = () => {
    messages.current = [];
    redraw();
  };
  const choose = (event) => {
    event.preventDefault();
    const given = new FormData(event.target).get("topic").trim();
    setQuery({ topic: given === EVERYTHING ? "" : given });
  };
  return html`<${Card} flush title="Messages" actions=${html`<${Live} stream=${stream} />
      <button class="small" aria-pressed=${paused} onClick=${() => setPaused(!paused)}>${paused ? "Go on" : "Pause"}</button>
      <button class="small" onClick=${clear}>Clear</button>`}>
    <form class="filters" onSubmit=${choose}>
      <label class="row">Topics <input name="topic" defaultValue=${topic} data-search aria-describedby="topic-hint" autocomplete="off" spellcheck=${false} /></label>
      <button>Subscribe</button>
      <span class="quiet" id="topic-hint"><code>+</code> is any one level, <code>#</code> at the end is all that follow</span>
    </form>
    ${messages.current.length === 0
      ? html`<p class="empty">${stream.state === "live" ? "Nothing was published yet." : "The stream is not open yet."} Messages appear here when they are published<span data-write>; publish one below</span>.</p>`
      : html`<div class="table-box messages" tabindex="0" role="region" aria-label="Messages"><table>
        <thead><tr><th scope="col">Time</th><th scope="col">Topic</th><th scope="col">Message</th></tr></thead>
        <tbody>${messages.current.map((each) => html`<tr key=${each.number}><td><${Time} at=${each.at} /></td><td><code>${each.topic}</code></td><td class="mono break">${each.message}</td></tr>`)}</tbody>
      </table></div>
      <div class="table-foot"><span>${count(total.current)} since it was opened, the last ${SHOWN_MAX} are shown</span></div>`}
  </${Card}>`;
}

// The MQTT clients that connected last.
function Clients({ app }) {
  const source = path("applications", app, "mqttClients");
  const data = useData((signal) => get(source, {}, { signal }), [app], { every: CLIENTS_EVERY_MS });
  const device = (row) => (row.deviceId ? link("/applications", app, "devices", row.deviceId) : undefined);
  const figure = (label, name) => ({ label, number: true, render: (row) => count(row[name]) });
  return html`<${Card} flush title="MQTT clients that are connected"><${Loaded} data=${data}>${(clients) => html`
    ${clients.items.length === 0 ? html`<p class="empty quiet">None.</p>` : html`<${Table} label="MQTT clients" rows=${clients.items} rowKey=${(row) => row.clientId} columns=${[
      { label: "Client", render: (row) => (device(row) ? html`<a href=${device(row)}>${row.clientId}</a>` : html`<code>${row.clientId}</code>`) },
      { label: "Is", render: (row) => (row.deviceId ? "a device" : "no device") },
      { label: "MQTT", render: (row) => `${row.version}, ${row.transport}` },
      { label: "Address", render: (row) => row.address || "-" },
      { label: "Connected", render: (row) => html`<${Time} at=${row.connected} age />` },
      figure("Packets from it", "packetsReceived"),
      figure("Messages to it", "messagesSent"),
      figure("Unacknowledged", "unacknowledged"),
      figure("Waiting", "waiting"),
      { label: "In its session", number: true, render: (row) => (row.hasSession ? count(row.queued) : "-") },
      figure("Dropped", "dropped"),
      { label: "Refused", number: true, render: (row) => html`<span title=${row.lastRefusal ? row.lastRefusal.message : undefined}>${count(row.refused)}</span>` },
    ]} />
    <div class="table-foot"><span>${count(clients.totalCount)} connected, those that connected last are shown first, at most ${clients.perPage}</span></div>`}`}</${Loaded}></${Card}>`;
}

// The MQTT clients without a connection that have a session.
function Sleepers({ app }) {
  const source = path("applications", app, "mqttClients");
  const data = useData((signal) => get(source, { state: "sleeping" }, { signal }), [app], { every: CLIENTS_EVERY_MS });
  const device = (row) => (row.deviceId ? link("/applications", app, "devices", row.deviceId) : undefined);
  return html`<${Card} flush title="MQTT clients that sleep"><${Loaded} data=${data}>${(clients) => html`
    ${clients.items.length === 0 ? html`<p class="empty quiet">None.</p>` : html`<${Table} label="MQTT clients that sleep" rows=${clients.items} rowKey=${(row) => row.clientId} columns=${[
      { label: "Client", render: (row) => (device(row) ? html`<a href=${device(row)}>${row.clientId}</a>` : html`<code>${row.clientId}</code>`) },
      { label: "Disconnected", render: (row) => html`<${Time} at=${row.disconnected} age />` },
      { label: "Its session ends", render: (row) => html`<${Time} at=${row.ends} />` },
      { label: "Subscriptions", number: true, render: (row) => count(row.subscriptions) },
      { label: "Messages wait", number: true, render: (row) => count(row.queued) },
      { label: "Dropped", number: true, render: (row) => count(row.dropped) },
    ]} />
    <div class="table-foot"><span>${count(clients.totalCount)} sessions without a connection, those that end first are shown first, at most ${clients.perPage}</span></div>`}`}</${Loaded}></${Card}>`;
}
