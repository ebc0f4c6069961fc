// The record of a device: its fields in a form, its attributes, all of it as JSON, and what removes something.

import { patch, path } from "../../lib/api.js";
import { link } from "../../lib/router.js";
import { html, useState } from "../../lib/ui.js";
import { Card, Facts } from "../../parts/basics.js";
import { Form } from "../../parts/form.js";
import { JsonEditor } from "../../parts/json.js";
import { note } from "../../parts/notes.js";
import { stamps } from "../../parts/records.js";
import { Attributes } from "./attributes.js";
import { Danger } from "./danger.js";
import { deviceFields } from "./fields.js";

const EDITABLE = ["name", "description", "deviceClass", "gatewayId", "parentId", "systemInterval", "keepDuplicates", "expectedIntervalSeconds", "tags", "attributes"];

export function SettingsTab({ app, device, record, reload }) {
  const home = path("applications", app, "devices", device);
  const [saved, setSaved] = useState(0); // both forms begin anew when one was saved, and not when the device reports
  const to = (id) => id && html`<a href=${link("/applications", app, "devices", id)}><code>${id}</code></a>`;
  const change = async (values) => {
    await patch(home, values);
    note("The device is changed.");
    await reload();
    setSaved((times) => times + 1);
  };
  const editable = Object.fromEntries(EDITABLE.filter((name) => record[name] !== undefined).map((name) => [name, record[name]]));
  return html`
    <${Card} title="About"><${Facts} rows=${[
      ["Gateway", to(record.gatewayId)], ["Parent", to(record.parentId)],
      record.ancestorIds?.length > 1 ? ["Ancestors", html`<span class="row">${record.ancestorIds.map(to)}</span>`] : ["Ancestors", null],
      ...stamps(record),
    ]} /></${Card}>
    <${Card} title="Change"><${Form} key=${saved} fields=${deviceFields({ created: false })} initial=${record} changesOnly submit=${change} /></${Card}>
    <${Attributes} source=${home} attributes=${record.attributes} reload=${reload} />
    <details class="card"><summary>Edit as JSON</summary>
      <${JsonEditor} changesOnly key=${saved} value=${editable} save=${change} label="The device as JSON" /></details>
    <${Danger} ...${{ app, device, record, reload }} />`;
}
