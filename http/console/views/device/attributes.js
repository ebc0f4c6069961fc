// The attributes that a device declares: their table, and the forms that declare, change and delete one.
//
// The unit of an attribute is its attribute tag `unit`, and the form shows it as a field of its own.

import { del, patch, path, post } from "../../lib/api.js";
import { unitOf } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { Card } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { Table } from "../../parts/table.js";
import { DATA_TYPES } from "./fields.js";

// The data type is fixed once an attribute is declared, so a change does not have it.
export const attributeFields = ({ created = true } = {}) => [
  { name: "name", label: "Name", required: true },
  created && { name: "dataType", label: "Type", type: "select", options: DATA_TYPES },
  { name: "unit", label: "Unit", placeholder: "\u00b0C", hint: "Shown with its values. Stored as the attribute tag unit.", blank: created ? undefined : "" },
  { name: "description", label: "Description", type: "longtext", rows: 2, blank: created ? undefined : "" },
  { name: "contentType", label: "Content type", hint: "Of a text or a blob, such as image/jpeg.", blank: created ? undefined : "" },
  { name: "attributeTags", label: "Other tags", type: "json", rows: 3, placeholder: '{"sensor": "PT100"}', blank: created ? undefined : {} },
].filter(Boolean);

// The body of a call: the unit is one of the tags. before: the attribute as it is.
function toAttribute({ unit, attributeTags, ...values }, before = {}) {
  if (unit === undefined && attributeTags === undefined) return values;
  const tags = { ...(attributeTags ?? othersOf(before)) };
  const given = unit ?? unitOf(before);
  if (given) tags.unit = given;
  return { ...values, attributeTags: tags };
}

const othersOf = ({ attributeTags = {} }) => Object.fromEntries(Object.entries(attributeTags).filter(([key]) => key !== "unit"));

export async function declareAttribute(source, reload) {
  const declared = await openForm("Declare an attribute", {
    fields: attributeFields(), button: "Declare", submit: (values) => post(`${source}/attributes`, toAttribute(values)),
  });
  if (declared) reload();
}

async function editAttribute(source, attribute, reload) {
  const changed = await openForm(`Change the attribute ${attribute.name}`, {
    fields: attributeFields({ created: false }), changesOnly: true,
    initial: { ...attribute, unit: unitOf(attribute), attributeTags: othersOf(attribute) },
    submit: (values) => patch(source + path("attributes", attribute.name), toAttribute(values, attribute)),
  });
  if (changed) reload();
}

export async function removeAttribute(source, attribute, reload) {
  const done = await confirmed({
    title: "Delete this attribute?",
    text: html`The values that the device reported for <b>${attribute.name}</b> are not shown any more, also when an attribute of this name is declared again.`,
    act: () => del(source + path("attributes", attribute.name)),
  });
  if (done) reload();
}

export function Attributes({ source, attributes, reload }) {
  return html`<${Card} flush title="Attributes" actions=${html`<button data-create onClick=${() => declareAttribute(source, reload)}>Declare an attribute</button>`}>
    ${attributes.length === 0 ? html`<p class="empty quiet">None is declared. Only declared attributes are accepted in states.</p>` : html`
    <${Table} label="Attributes" rowKey=${(row) => row.name} rows=${attributes} columns=${[
      { label: "Name", render: (row) => html`<b>${row.name}</b>` },
      { label: "Type", render: (row) => row.dataType },
      { label: "Unit", render: unitOf },
      { label: "Description", render: (row) => row.description },
      { label: html`<span class="hidden-label">Changes</span>`, render: (row) => html`<button class="small" data-write onClick=${() => editAttribute(source, row, reload)}>Change<span class="hidden-label"> ${row.name}</span></button>` },
    ]} />`}
  </${Card}>`;
}
