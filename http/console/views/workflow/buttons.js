// The virtual buttons of a version, to be pressed with a payload.

import { post } from "../../lib/api.js";
import { parseExact } from "../../lib/exact.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Card } from "../../parts/basics.js";
import { openForm } from "../../parts/form.js";
import { note } from "../../parts/notes.js";

export function Buttons({ app, flow, source, version }) {
  const buttons = version.triggers.filter((each) => each.type === "virtualButton");
  if (!buttons.length) return null;
  const press = async (button) => {
    const key = button.key || `${flow}-${button.meta?.id || button.meta?.uiId}`;
    const done = await openForm(`Press ${nameOf(button)}`, {
      fields: [{ name: "payload", label: "Payload", type: "json", rows: 6, hint: "It is the data of the run." }],
      initial: { payload: button.meta?.payload ? given(button.meta.payload) : {} },
      button: "Press",
      submit: ({ payload }) => post(source + "/virtualButton", { key, payload, flowVersion: version.version }),
    });
    if (done) note(html`Pressed. What became of it is under <a href=${link("/applications", app, "workflows", flow, "runs")}>Runs</a>.`);
  };
  return html`<${Card} title="Virtual buttons"><div class="row">
    ${buttons.map((each) => html`<button data-write class="break" onClick=${() => press(each)}>${nameOf(each)}</button>`)}</div></${Card}>`;
}

const nameOf = (button) => button.meta?.label || button.key || "the button";

// The payload of a button is a text with JSON.
function given(text) {
  try {
    return parseExact(text);
  } catch {
    return {};
  }
}
