// Bundles in forms: the zip file that an export made.

import { request } from "../../lib/api.js";
import { html } from "../../lib/ui.js";

// A field for the file of a bundle. `take(file)` gets it.
export const bundleField = (take) => html`<div class="field"><label for="bundle">Bundle</label>
  <input id="bundle" type="file" accept=".zip,application/zip" onChange=${(event) => take(event.target.files[0])} /></div>`;

// Send a form with a bundle; the answer of the import.
export async function sendBundle(target, file, fields) {
  if (!file) throw new Error("importBundle: is missing; choose the zip file that an export made.");
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set("importBundle", file);
  return (await request("POST", target, { body: form })).json();
}
