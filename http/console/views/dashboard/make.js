// A button that makes a dashboard of what a device reports, and goes to it.

import { go, link } from "../../lib/router.js";
import { html, useState } from "../../lib/ui.js";
import { note } from "../../parts/notes.js";
import { makeDeviceBoard } from "./templates.js";

export function MakeBoard({ app, device }) {
  const [busy, setBusy] = useState(false);
  const make = async () => {
    if (busy) return;
    setBusy(true);
    try {
      const made = await makeDeviceBoard(app, device);
      go(link("/applications", app, "dashboards", made.id));
    } catch (error) {
      note(error.message, "bad");
      setBusy(false);
    }
  };
  return html`<button data-write aria-disabled=${busy} onClick=${make}>Make a dashboard</button>`;
}
