// The attributes that a device declares: the forms that declare, change and delete one.

import { del, patch, path } from "../../lib/api.js";
import { html } from "../../lib/ui.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { DATA_TYPES } from "./fields.js";

// The data type is fixed once an attribute is declared, so a change does not have it.
export const attributeFields = ({ created = true } = {}) => [
  { name: "name", label: "Name", required: true },
  created && { name: "dataType", label: "Type", type: "select", options: DATA_TYPES },
  { name: "description", label: "Description", type: "longtext", rows: 2, blank: created ? undefined : "" },
  { name: "contentType", label: "Content type", hint: "Of a text or a blob, such as image/jpeg.", blank: created ? undefined : "" },
  { name: "attributeTags", label: "Tags", type: "json", rows: 3, placeholder: '{"unit": "C"}', blank: created ? undefined : {} },
].filter(Boolean);

export async function editAttribute(source, attribute, reload) {
  const changed = await openForm(`Change the attribute ${attribute.name}`, {
    fields: attributeFields({ created: false }), initial: attribute, changesOnly: true,
    submit: (values) => patch(source + path("attributes", attribute.name), values),
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
