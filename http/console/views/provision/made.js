// Devices that were created together: their keys as a file, which of them has reported, and how each connects.

import { get, path, post } from "../../lib/api.js";
import { plural } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { link } from "../../lib/router.js";
import { html, useState } from "../../lib/ui.js";
import { Badge, Card, Fresh, Loaded, Notice, Problem, Time } from "../../parts/basics.js";
import { Table } from "../../parts/table.js";
import { Connect } from "./connect.js";

const EVERY_MS = 2000;

// rows: of createFromRecipe.
export function Made({ app, rows, recipe }) {
  const devices = rows.filter((each) => each.deviceId), refused = rows.filter((each) => !each.deviceId);
  const ids = devices.map((each) => each.deviceId);
  const [shown, setShown] = useState(null);
  const states = useData((signal) => post(path("applications", app, "data", "last-value-query"), { deviceIds: ids }, { signal }), [ids.join()], { every: EVERY_MS });
  const arrived = states.value ? ids.filter((id) => states.value[id]?.time) : [];
  const file = ["name,deviceId,accessKey,accessSecret", ...devices.map((each) => [each.name, each.deviceId, each.accessKey, each.accessSecret].map((text) => `"${text.replaceAll('"', '""')}"`).join(","))].join("\n");
  return html`
    <${Notice} tone="warn"><div class="spread"><span>${plural(devices.length, "device")} created. <b>The secrets of their access keys are in this file, now and never again.</b></span>
      <a class="button" href=${`data:text/csv;charset=utf-8,${encodeURIComponent(file)}`} download=${`${recipe.name}-keys.csv`}>Download the keys</a></div></${Notice}>
    ${refused.length > 0 && html`<${Problem} error=${{ message: `${plural(refused.length, "device")} refused: ${refused[0].error}` }} />`}
    <${Card} flush title=${`${arrived.length} of ${devices.length} have reported`} actions=${html`<${Fresh} data=${states} />`}>
      <${Table} label="The devices" rows=${devices} rowKey=${(row) => row.deviceId} columns=${[
        { label: "Name", render: (row) => html`<a href=${link("/applications", app, "devices", row.deviceId)}>${row.name}</a>` },
        { label: "First state", render: (row) => (states.value?.[row.deviceId]?.time ? html`<${Badge} tone="good">arrived</${Badge}> <${Time} at=${states.value[row.deviceId].time} age />` : html`<span class="quiet">waiting</span>`) },
        { label: html`<span class="hidden-label">Connect</span>`, render: (row) => html`<button class="small" aria-pressed=${shown === row} onClick=${() => setShown(row)}>Connect<span class="hidden-label"> ${row.name}</span></button>` },
        { label: "Key", render: (row) => html`<code>${row.accessKey}</code>` },
      ]} />
    </${Card}>
    ${shown && html`<${ConnectOne} key=${shown.deviceId} app=${app} row=${shown} />`}`;
}

function ConnectOne({ app, row }) {
  const data = useData((signal) => get(path("applications", app, "devices", row.deviceId), {}, { signal }), [row.deviceId]);
  return html`<${Loaded} data=${data}>${(record) => html`<${Connect} app=${app} record=${record} access=${{ key: row.accessKey, secret: row.accessSecret }} />`}</${Loaded}>`;
}
