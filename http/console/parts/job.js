// Jobs: their status, their progress, their result, and a dialog that follows one to its end.

import { get, ownPath, path } from "../lib/api.js";
import { bytes, count } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { link } from "../lib/router.js";
import { html, useEffect } from "../lib/ui.js";
import { Badge, Loaded, Problem } from "./basics.js";
import { openDialog } from "./dialog.js";

const RUNNING_MS = 1000;
const TONES = { completed: "good", inProgress: "accent", errored: "bad", failed: "bad" };
const WORDS = { queued: "queued", inProgress: "in progress", completed: "completed", errored: "refused", failed: "failed" };

export const jobEnded = (job) => ["completed", "errored", "failed"].includes(job.status);

// A job, loaded again every second until it has ended. `id` is that of the answer that queued it, or of its record.
export function useJob(app, id) {
  const source = path("applications", app, "jobLogs", id);
  return useData((signal) => get(source, {}, { signal, exact: true }), [source], { every: (job) => (jobEnded(job) ? 0 : RUNNING_MS) });
}

export const JobStatus = ({ job }) => html`<${Badge} tone=${TONES[job.status] || ""}>${WORDS[job.status] || job.status}</${Badge}>`;

// How far a job is: a bar while it runs, then only the number. What is counted depends on the job.
export function JobProgress({ job }) {
  const { completed, total } = job.progress;
  const known = total !== undefined && total !== null;
  const text = known ? `${count(completed)} of ${count(total)}` : count(completed);
  if (jobEnded(job)) return html`<span class="nowrap">${job.status === "completed" ? count(completed) : text}</span>`;
  const bar = { "aria-label": "Progress of the job", max: known ? Math.max(total, 1) : 1 };
  return html`<div class="job-progress">${known ? html`<progress ...${bar} value=${completed}></progress>` : html`<progress ...${bar}></progress>`}
    <span class="quiet nowrap">${text}</span></div>`;
}

// The file of a job as a link. Without one: what the server says instead.
export function JobFile({ job }) {
  const file = job.output?.file;
  if (!file) return null;
  if (!file.url) return html`<span class="quiet">${file.name}: ask somebody who may run this job.</span>`;
  if (new Date(file.expires) < Date.now()) return html`<span class="quiet">${file.name} has expired</span>`;
  return html`<a class="button small" href=${ownPath(file.url)} download=${file.name} title=${file.name}>Download (${bytes(file.size)})</a>`;
}

// Follow a job in a dialog. `id` is the `jobId` of the answer that queued it. The promise ends when the dialog is closed.
export function openJob(title, app, id, ended) {
  return openDialog(title, (close) => html`<${JobDialog} ...${{ app, id, close, ended }} />`);
}

function JobDialog({ app, id, close, ended }) {
  const data = useJob(app, id);
  const over = data.value && jobEnded(data.value);
  useEffect(() => { if (over) ended?.(data.value); }, [over]);
  return html`<div class="stack">
    <${Loaded} data=${data}>${(job) => html`
      <div class="row" role="status"><${JobStatus} job=${job} /><${JobProgress} job=${job} /></div>
      <${Problem} error=${job.error} />
      <div><${JobFile} job=${job} /></div>
      <p class="quiet">${!jobEnded(job) && "The job goes on when this is closed. "}<a href=${link("/applications", app, "jobs", { job: job.id })} onClick=${() => close()}>Open the job</a></p>`}</${Loaded}>
    <div class="buttons"><button onClick=${() => close()}>Close</button></div>
  </div>`;
}
