// What cannot be undone, or only for a while: the removal of what a device reported, of an attribute, of the device.

import { del, path, post, queryString } from "../../lib/api.js";
import { go, link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Card } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { openJob } from "../../parts/job.js";
import { removeAttribute } from "./attributes.js";

export function Danger({ app, device, record, reload }) {
  const home = path("applications", app, "devices", device);
  const remove = async () => {
    const done = await confirmed({
      title: "Delete this device?", text: html`<b>${record.name}</b> can be restored for 93 days, with everything that it reported.`,
      typed: record.name, act: () => del(home),
    });
    if (done) go(link("/applications", app, "devices"));
  };
  return html`<${Card} title="Danger" class="card danger-zone" data-write><ul class="plain">
    <li class="spread"><span>Remove what the device reported in a time, or the values of some attributes. Nothing brings them back.</span>
      <button class="danger" onClick=${() => removeData(app, home, record, reload)}>Remove data</button></li>
    ${record.attributes.length > 0 && html`<li class="spread"><span>Delete an attribute. Its values are not shown any more.</span>
      <button class="danger" onClick=${() => chooseAttribute(home, record, reload)}>Delete an attribute</button></li>`}
    <li class="spread"><span>Delete the device. It disappears at once, and can be restored for 93 days.</span>
      <button class="danger" onClick=${remove}>Delete this device</button></li></ul></${Card}>`;
}

async function chooseAttribute(home, record, reload) {
  const chosen = await openForm("Delete an attribute", {
    fields: [{ name: "name", label: "Attribute", type: "select", options: record.attributes.map((each) => each.name) }], button: "Go on", submit: async (values) => values,
  });
  if (chosen) await removeAttribute(home, chosen, reload);
}

// Asks for the range first, then for the name of the device, since what is removed is gone.
async function removeData(app, home, record, reload) {
  const range = await openForm("Remove data", {
    fields: [
      { name: "start", label: "From", type: "time" }, { name: "end", label: "To", type: "time", hint: "Empty: up to now." },
      { name: "attributes", label: "Attributes", type: "lines", rows: 3, hint: "One a line: only their values are removed. Empty: all states, commands and the connection log." },
    ],
    button: "Go on", submit: async (values) => values,
  });
  if (!range) return;
  const { attributes, ...span } = range;
  let answer;
  await confirmed({
    title: "Remove data?", typed: record.name, button: "Remove data",
    text: attributes ? `The values of ${attributes.join(", ")} in this range are removed for good.` : "All states, commands and entries of the connection log in this range are removed for good.",
    act: async () => {
      answer = attributes
        ? await post(path("applications", app, "devices", "removeData"), { query: { id: record.id }, ...span, attributes })
        : await del(`${home}/data${queryString(span)}`);
    },
  });
  if (answer) await openJob("Removal of data", app, answer.jobId, reload);
}
