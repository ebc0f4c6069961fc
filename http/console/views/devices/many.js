// What is done with many devices: with those that are selected, or with all that match.

import { patch, path, post } from "../../lib/api.js";
import { plural } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { openJob } from "../../parts/job.js";
import { note } from "../../parts/notes.js";

// chosen: {query, total}, the devices as a query of the server and how many they are. changed(): when it was done.
export function Many({ app, chosen, deleted, matching, all, selectAll, clear, changed }) {
  const devices = path("applications", app, "devices");
  const { query, total } = chosen;
  const them = plural(total, "device");
  const follow = async (title, answer, done) => {
    if (answer.jobId) await openJob(title, app, answer.jobId);
    else told(answer, done);
    changed();
  };

  const command = async () => {
    const answer = await openForm(`Send a command to ${them}`, {
      fields: [
        { name: "name", label: "Name", required: true },
        { name: "payload", label: "Payload", type: "json", rows: 4, hint: "Any JSON." },
        { name: "ttlSeconds", label: "Time to live in seconds", type: "number", hint: "How long it waits for devices with a link." },
      ],
      button: `Send to ${them}`,
      submit: (values) => post(path("applications", app, "devices", "command"), { ...values, deviceQuery: query }),
    });
    if (answer) await follow("Command", answer, () => `The command was sent to ${them}.`);
  };

  const tags = async () => {
    let answer;
    await openForm(`Change the tags of ${them}`, {
      fields: [
        { name: "set", label: "Set", type: "tags", rows: 3, hint: "One key=value a line. It takes the place of all tags with this key." },
        { name: "remove", label: "Remove", type: "lines", rows: 3, hint: "One key a line." },
      ],
      button: `Change ${them}`,
      submit: async ({ set = [], remove = [] }) => {
        const updateOperations = [
          ...set.map((value) => ({ operation: "set", target: "tag", value })),
          ...remove.map((tagKey) => ({ operation: "remove", target: "tag", tagKey })),
        ];
        answer = await patch(devices, { query, updateOperations });
      },
    });
    if (answer) await follow("Change of tags", answer, (each) => `${plural(each.updated, "device")} changed, ${each.skipped} had the tags already.`);
  };

  const remove = async () => {
    let answer;
    await confirmed({
      title: `Delete ${them}?`, text: "Deleted devices can be restored for 93 days, with everything that they reported.",
      button: `Delete ${them}`, typed: total > 1 ? String(total) : undefined,
      act: async () => { answer = await post(`${devices}/delete`, { query }); },
    });
    if (answer) await follow("Deletion", answer, (each) => `${plural(each.removed, "device")} deleted.`);
  };

  const restore = async () => {
    let answer;
    await confirmed({
      title: `Restore ${them}?`, text: "They come back with everything that they had.", button: `Restore ${them}`,
      act: async () => { answer = await post(`${devices}/restore`, { query }); },
    });
    if (answer) await follow("Restoration", answer, (each) => `${plural(each.restored, "device")} restored.`);
  };

  const exported = async () => {
    let answer;
    await openForm(`Export ${them}`, {
      fields: [
        { name: "what", label: "What", type: "select", options: [["devices", "Records of the devices"], ["states", "States that they reported, as CSV"], ["counts", "Counts of their payloads, as CSV"]] },
        { name: "format", label: "Format", type: "select", options: [["csv", "CSV"], ["json", "JSON"]], show: (values) => values.what === "devices" },
        { name: "start", label: "From", type: "time", show: (values) => values.what !== "devices" },
        { name: "end", label: "To", type: "time", show: (values) => values.what !== "devices" },
      ],
      button: "Export",
      submit: async ({ what, format, start, end }) => {
        if (what === "devices") answer = await post(`${devices}/export`, { query, format });
        else if (what === "counts") answer = await post(`${devices}/payloadCounts`, { query, start, end });
        else answer = await post(path("applications", app, "data", "export"), { deviceQuery: query, start, end });
      },
    });
    if (answer) await follow("Export", answer);
  };

  return html`<div class="bar" role="region" aria-label="Selected devices">
    <b role="status">${all ? `All ${them} that match` : `${them} selected`}</b>
    ${!all && matching > total && html`<button class="small" onClick=${selectAll}>Select all ${plural(matching, "device")} that match</button>`}
    ${deleted ? html`<button data-write onClick=${restore}>Restore</button>` : html`
      <button data-write onClick=${command}>Send a command</button><button data-write onClick=${tags}>Change tags</button>
      <button onClick=${exported}>Export</button><button class="danger" onClick=${remove}>Delete</button>`}
    <button class="plain" onClick=${clear}>Clear the selection</button>
  </div>`;
}

// What came of a change that was done at once. Devices that refused it are counted, and the first reason is shown.
function told(answer, done) {
  const reason = answer.failed ? ` ${plural(answer.failed, "device")} refused: ${answer.errors[0].message}` : "";
  note(done(answer) + reason, reason ? "bad" : "good");
}
