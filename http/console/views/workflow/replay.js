// Repeat runs: one on a version of choice, or the failed ones of a time.

import { path, post } from "../../lib/api.js";
import { plural } from "../../lib/format.js";
import { html, useState } from "../../lib/ui.js";
import { Problem } from "../../parts/basics.js";
import { openDialog, useOpen } from "../../parts/dialog.js";
import { note } from "../../parts/notes.js";
import { VersionSelect } from "./choice.js";

// Ask for the version and repeat the run. The promise has {id, replayOf}, undefined when it was dismissed.
export function replayRun(app, flow, run, names) {
  const send = (version) => post(path("applications", app, "flows", flow, "runs", run.id, "replay"), version ? { flowVersion: version } : {});
  return openDialog("Replay this run", (close) => html`<${Replay} ...${{ names, send, close }}
    text="The trigger is queued again with the payload and the time that it had. What the nodes do is done again: commands are sent, requests are made." />`);
}

// Repeat the failed and abandoned runs since a time, in calls of 100 until all are queued or the dialog is closed. A note
// says how many.
export function replayFailed(app, flow, since, names) {
  // A further try after an error goes on where that came, so that no run is repeated twice.
  let runs = 0, skipped = 0, continueAt;
  const queued = () => `${plural(runs, "run")} queued again${skipped ? `, ${skipped} skipped` : ""}`;
  const send = async (version, open) => {
    try {
      do {
        const body = { ...(continueAt ? { continueAt } : { since }), ...(version ? { flowVersion: version } : {}) };
        const answer = await post(path("applications", app, "flows", flow, "runs", "replay"), body);
        runs += answer.runs.length;
        skipped += answer.skipped;
        continueAt = answer.continueAt;
      } while (continueAt && open());
    } catch (error) {
      throw runs + skipped ? new Error(`${queued()}, then: ${error.message}`) : error;
    }
    note(`${queued()}.${continueAt ? " The later ones were not, because the dialog was closed." : ""}`);
  };
  return openDialog("Replay the failed runs", (close) => html`<${Replay} ...${{ names, send, close }}
    text="The failed and the abandoned runs of this time are queued again, the oldest first. What their nodes do is done again. When this is closed, no more are." />`);
}

function Replay({ text, names, send, close }) {
  const [version, setVersion] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const open = useOpen();
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      close(await send(version, open));
    } catch (failure) {
      if (!open()) note(failure.message, "bad");
      setError(failure);
      setBusy(false);
    }
  };
  return html`<form class="stack" onSubmit=${submit}>
    <p>${text}</p>
    <${VersionSelect} names=${names} value=${version} set=${setVersion} all="the default version" />
    <${Problem} error=${error} />
    <div class="buttons"><button type="button" onClick=${() => close()}>Cancel</button><button class="primary" disabled=${busy}>Replay</button></div>
  </form>`;
}
