// What is done with events: one, those that are selected, or all that match. Each asks first, in a dialog.

import { patch, path, post, queryString } from "../../lib/api.js";
import { plural } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { openJob } from "../../parts/job.js";
import { note } from "../../parts/notes.js";
import { LEVELS } from "./choice.js";

const WORDS = { acknowledged: ["Acknowledge", "acknowledged"], resolved: ["Resolve", "resolved"], new: ["Open again", "opened again"] };
const COMMENT = { name: "comment", label: "Comment", type: "longtext", hint: "It stands in the history of the event." };

const events = (app) => path("applications", app, "events");

// Give one event a state. True if it was done.
export async function respond(app, event, state) {
  const [verb, done] = WORDS[state];
  const answer = await openForm(`${verb}: ${event.subject}`, {
    fields: [COMMENT], button: verb, submit: (values) => patch(path("applications", app, "events", event.id), { state, ...values }),
  });
  if (answer) note(`The event is ${done}.`);
  return Boolean(answer);
}

// Give many events a state, or only a comment. `query` chooses them; `total` is how many they are now. True if it was done.
export async function respondToMany(app, { query, total, state }) {
  const [verb, done] = WORDS[state] || ["Comment on", "updated"];
  const title = `${verb} ${plural(total, "event")}`;
  const answer = await openForm(title, {
    fields: [{ ...COMMENT, required: !state }], button: verb,
    submit: (values) => patch(events(app) + queryString({ query }), { state, ...values }),
  });
  return finish(app, title, answer, `${plural(total, "event")} ${total === 1 ? "is" : "are"} ${done}.`);
}

export async function deleteMany(app, { query, total }) {
  let answer = null;
  const title = `Delete ${plural(total, "event")}`;
  await confirmed({
    title: `${title}?`, text: `${plural(total, "event")} and all updates are deleted for good.`, typed: total > 50 ? String(total) : undefined,
    act: async () => { answer = await post(`${events(app)}/delete`, query); },
  });
  return finish(app, title, answer, `${plural(answer?.removed ?? 0, "event")} ${answer?.removed === 1 ? "is" : "are"} deleted.`);
}

// Few events are changed at once; many by a job, which is followed until it ends.
async function finish(app, title, answer, text) {
  if (!answer) return false;
  if (answer.jobId) await openJob(title, app, answer.jobId);
  else note(text);
  return true;
}

// Export the events of a query. The file is made by a job.
export async function exportEvents(app, query) {
  const answer = await openForm("Export events", {
    fields: [
      { name: "format", label: "Format", type: "select", options: [["csv", "CSV"], ["json", "JSON"]] },
      { name: "excludeUpdates", label: "Leave out the history of the events", type: "checkbox" },
    ],
    button: "Export", extra: html`<p class="quiet">The events that the list shows, on all its pages.</p>`,
    submit: (values) => post(`${events(app)}/export`, { ...values, query }),
  });
  if (answer) await openJob("Export of events", app, answer.jobId);
}

// `device`: the id that the form begins with.
export const createEvent = (app, device) => openForm("Create an event", {
  fields: [
    { name: "subject", label: "Subject", required: true },
    { name: "level", label: "Level", type: "select", options: LEVELS, value: "warning" },
    { name: "message", label: "Message", type: "longtext" },
    { name: "deviceId", label: "Device", hint: "The id of a device of this application." },
    { name: "eventTags", label: "Tags", type: "map", hint: "One key=value on each line." },
    { name: "data", label: "Data", type: "json", rows: 5, hint: "Any JSON." },
  ],
  initial: { deviceId: device }, button: "Create", submit: (values) => post(events(app), values),
});
