// One device: its tabs, each with an address of its own.

import { get, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { link } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Copy, Loaded, Page, Tabs, Tags } from "../parts/basics.js";
import { MakeBoard } from "./dashboard/make.js";
import { Connection } from "./devices/connection.js";
import { ActorTab } from "./device/actor.js";
import { plainTags } from "./device/command_shapes.js";
import { CommandsTab } from "./device/commands.js";
import { ConnectTab } from "./device/connect.js";
import { ConnectionsTab } from "./device/connections.js";
import { Life } from "./device/life.js";
import { LiveTab } from "./device/live.js";
import { PayloadsTab } from "./device/payloads.js";
import { SettingsTab } from "./device/settings.js";
import { StatesTab } from "./device/states.js";

const REPEAT_MS = 10_000;
const TABS = [
  ["live", "Live", LiveTab],
  ["commands", "Commands", CommandsTab],
  ["states", "States", StatesTab],
  ["connections", "Connections", ConnectionsTab],
  ["connect", "Connect", ConnectTab],
  ["actor", "Actor", ActorTab],
  ["payloads", "Payloads", PayloadsTab],
  ["settings", "Settings", SettingsTab],
];

export function Device({ app, device, tab = "live" }) {
  const data = useData((signal) => load(app, device, signal), [app, device], { every: REPEAT_MS });
  const record = data.value?.record;
  const home = link("/applications", app, "devices");
  const Shown = (TABS.find(([key]) => key === tab) || TABS[0])[2];
  const items = TABS.map(([key, text]) => [key, text, link("/applications", app, "devices", device, key)]);
  return html`<${Page} title=${record?.name || "Device"} trail=${[["Devices", home]]} lead=${record && html`<${About} ...${data.value} />`} actions=${record && html`<${MakeBoard} app=${app} device=${device} />`} of=${data}>
    <${Tabs} items=${items} current=${tab} label="Parts of the device" />
    <${Loaded} data=${data}>${(value) => html`<${Shown} ...${{ app, device, reload: data.reload }} record=${value.record} />`}</${Loaded}>
  </${Page}>`;
}

// The record, and its signs of life, which some may not read.
async function load(app, device, signal) {
  const source = path("applications", app, "devices");
  const [record, health] = await Promise.all([
    get(`${source}/${encodeURIComponent(device)}`, {}, { signal, exact: true }),
    get(`${source}/health`, { deviceIds: [device] }, { signal }).then(({ items }) => items[0], () => undefined),
  ]);
  return { record, health };
}

const About = ({ record, health }) => html`<span class="row">
  ${health ? html`<${Life} life=${health} />` : html`<${Connection} info=${record.connectionInfo} />`}<${Badge}>${record.deviceClass}</${Badge}>
  <${Tags} tags=${plainTags(record.tags)} />
  <span class="nowrap"><code>${record.id}</code> <${Copy} text=${record.id} label="Copy the id" /></span></span>`;
