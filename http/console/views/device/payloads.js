// How many payloads a device sent and got: by kind, and for each hour or day.

import { get, path } from "../../lib/api.js";
import { count } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { route, setQuery } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Card, Loaded, Tile } from "../../parts/basics.js";
import { Chart } from "../../parts/chart.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const RANGES = [["1", "24 h", HOUR_MS], ["7", "7 d", HOUR_MS], ["30", "30 d", DAY_MS], ["365", "1 year", DAY_MS]];
const KINDS = {
  deviceState: "States", deviceCommand: "Commands", deviceConnect: "Connections", deviceDisconnect: "Disconnections",
  mqttIn: "MQTT in", mqttOut: "MQTT out",
};

export function PayloadsTab({ app, device }) {
  const home = path("applications", app, "devices", device);
  const [days, , resolution] = RANGES.find(([key]) => key === route.value.query.days) || RANGES[2];
  const start = -Number(days) * DAY_MS;
  const kinds = useData((signal) => get(`${home}/payloadCounts`, { start }, { signal }), [home, days]);
  const periods = useData((signal) => get(`${home}/payloadCountsBreakdown`, { start, resolution }, { signal }), [home, days]);
  const choice = html`<div class="row" role="group" aria-label="Range of time">${RANGES.map(([key, text]) => html`
    <button class="small" aria-pressed=${key === days} onClick=${() => setQuery({ days: key }, { push: true })}>${text}</button>`)}</div>`;
  return html`<${Card} title="Payloads" actions=${choice}>
    <${Loaded} data=${kinds}>${(value) => html`<div class="tiles">
      ${Object.entries(value).map(([kind, number]) => html`<${Tile} label=${KINDS[kind] || kind} value=${count(number)} />`)}</div>`}</${Loaded}>
    <h3 class="apart">${resolution === DAY_MS ? "For each day (UTC)" : "For each hour"}</h3>
    <${Loaded} data=${periods}>${({ counts }) => html`<${Chart} label="Payloads" series=${[{ name: "Payloads", step: true }]}
      data=${[counts.map((each) => Date.parse(each.date) / 1000), counts.map((each) => each.value)]} />`}</${Loaded}>
  </${Card}>`;
}
