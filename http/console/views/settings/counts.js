// Counts of an application: payloads and devices over time, from the hours and days that the server counts.

import { get, path } from "../../lib/api.js";
import { count } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { link, route } from "../../lib/router.js";
import { html, useMemo } from "../../lib/ui.js";
import { Card, Loaded, Tabs } from "../../parts/basics.js";
import { Chart } from "../../parts/chart.js";
import { labelOf } from "../../parts/schema.js";
import { Table } from "../../parts/table.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const RANGES = {
  day: { text: "24 hours", ms: DAY_MS, resolution: HOUR_MS }, week: { text: "7 days", ms: 7 * DAY_MS, resolution: HOUR_MS },
  month: { text: "30 days", ms: 30 * DAY_MS, resolution: DAY_MS }, year: { text: "A year", ms: 365 * DAY_MS, resolution: DAY_MS },
};
const times = (counts) => counts.map((each) => new Date(each.date).getTime() / 1000);

export function Counts({ app }) {
  const name = route.value.query.range in RANGES ? route.value.query.range : "month";
  const range = RANGES[name];
  const items = Object.entries(RANGES).map(([key, { text }]) => [key, text, link("/applications", app, "settings", "counts", { range: key })]);
  return html`<div><${Tabs} label="Range" current=${name} items=${items} /></div>
    <${Payloads} key=${name} app=${app} range=${range} />
    <${Devices} app=${app} ms=${Math.max(range.ms, 7 * DAY_MS)} />`;
}

function Payloads({ app, range }) {
  const source = path("applications", app);
  const start = -range.ms;
  const data = useData(async (signal) => {
    const [breakdown, kinds] = await Promise.all([
      get(`${source}/payloadCountsBreakdown`, { start, resolution: range.resolution, includeNonBillable: true }, { signal }),
      get(`${source}/payloadCounts`, { start }, { signal }),
    ]);
    return { breakdown, kinds };
  }, [source, start]);
  return html`<${Loaded} data=${data}>${({ breakdown, kinds }) => html`<${PayloadChart} breakdown=${breakdown} hours=${range.resolution === HOUR_MS} />
    <${Card} flush title="By kind"><${Table} label="Payloads by kind" rowKey=${([kind]) => kind}
      rows=${Object.entries(kinds).map(([kind, counts]) => [kind, sum(counts), counts]).filter(([, total]) => total > 0)}
      columns=${[
        { label: "Kind", render: ([kind]) => labelOf(kind) },
        { label: "Payloads", number: true, render: ([, total]) => count(total) },
      ]} />${!Object.values(kinds).some((counts) => sum(counts) > 0) && html`<p class="empty">Nothing was counted in this time.</p>`}</${Card}>`}</${Loaded}>`;
}

const sum = (counts) => counts.total ?? Object.values(counts).reduce((one, other) => one + other, 0);

function PayloadChart({ breakdown, hours }) {
  const data = useMemo(() => [times(breakdown.counts), breakdown.counts.map((each) => each.value)], [breakdown]);
  const unit = hours ? "an hour" : "a day";
  return html`<${Card} title=${`Payloads ${unit}`}><${Chart} label=${`Payloads ${unit}`} series=${[{ name: `Payloads ${unit}`, step: true }]} data=${data} /></${Card}>`;
}

function Devices({ app, ms }) {
  const source = path("applications", app, "deviceCounts");
  const data = useData((signal) => get(source, { start: -ms }, { signal }), [source, ms]);
  return html`<${Card} title="Devices"><${Loaded} data=${data}>${(value) => html`<${DeviceChart} counts=${value.counts} />`}</${Loaded}></${Card}>`;
}

function DeviceChart({ counts }) {
  const data = useMemo(() => [times(counts), ...["total", "created", "deleted"].map((name) => counts.map((each) => each[name]))], [counts]);
  return html`<${Chart} label="Devices by day" series=${[{ name: "Devices", step: true }, { name: "Created", step: true }, { name: "Deleted", step: true }]} data=${data} />`;
}
