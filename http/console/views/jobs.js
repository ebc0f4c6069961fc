// The jobs of an application: exports, deletions and other work that goes on after its call was answered.

import { path, post } from "../lib/api.js";
import { duration } from "../lib/format.js";
import { link, route, setQuery } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Card, Empty, Facts, Fresh, Loaded, Page, Problem, Time } from "../parts/basics.js";
import { confirmed } from "../parts/dialog.js";
import { jobEnded, JobFile, JobProgress, JobStatus, useJob } from "../parts/job.js";
import { Json } from "../parts/json.js";
import { note } from "../parts/notes.js";
import { RecordTable } from "../parts/table.js";

const RUNNING_MS = 1000;
const IDLE_MS = 5000;
const STATUSES = [["", "All"], ["queued", "Queued"], ["inProgress", "In progress"], ["completed", "Completed"], ["errored", "Refused"], ["failed", "Failed"]];
const LEAD = "Exports, deletions of many records and other work that takes long. A job goes on after a restart of the server.";

export function Jobs({ app }) {
  const { job } = route.value.query;
  return job ? html`<${Job} key=${job} app=${app} id=${job} />` : html`<${JobList} app=${app} />`;
}

function JobList({ app }) {
  const { status } = route.value.query;
  const source = path("applications", app, "jobLogs");
  const busy = (page) => (page.items.every(jobEnded) ? IDLE_MS : RUNNING_MS);
  const filters = html`<label class="row">Status <select value=${status || ""} onChange=${(event) => setQuery({ status: event.target.value, page: "" })}>
    ${STATUSES.map(([value, text]) => html`<option value=${value} selected=${value === (status || "")}>${text}</option>`)}</select></label>`;
  const columns = [
    { label: "Job", sort: "name", render: (row) => html`<span class="nowrap">${row.name}</span>` },
    { label: "Status", sort: "status", render: (row) => html`<${JobStatus} job=${row} />` },
    { label: "Progress", render: (row) => html`<${JobProgress} job=${row} />` },
    { label: "Requested", sort: "runQueuedAt", render: (row) => html`<${Time} at=${row.runQueuedAt} />` },
    { label: "Took", number: true, render: (row) => html`<span class="nowrap">${took(row)}</span>` },
    { label: "Result", render: (row) => (row.error ? row.error.message : html`<${JobFile} job=${row} />`) },
  ];
  const empty = html`<${Empty} title="There are no jobs yet" call=${{ method: "POST", path: path("applications", app, "devices", "export"), body: {} }}>
    <div><a class="button primary" href=${link("/applications", app, "settings", "copies")}>Export this application</a></div></${Empty}>`;
  return html`<${Page} title="Jobs" lead=${LEAD}>
    <${RecordTable} noun="job" source=${source} params=${status ? { query: { status } } : {}} columns=${columns} search="" filters=${filters} empty=${empty}
      sortField="runQueuedAt" sortDirection="desc" every=${busy} href=${(row) => link("/applications", app, "jobs", { job: row.id })} />
  </${Page}>`;
}

const took = (job) => (job.runStartedAt && job.runCompletedAt ? duration(new Date(job.runCompletedAt) - new Date(job.runStartedAt)) : "-");

function Job({ app, id }) {
  const data = useJob(app, id);
  const job = data.value;
  const repeat = job && jobEnded(job) && repetition(app, job);
  const again = async () => {
    const done = await confirmed({
      title: "Run this job again?", text: html`A new job with the same input is queued. This one stays as it is.`, button: "Run again",
      act: async () => {
        const answer = await post(...repeat);
        note("The new job is queued.");
        location.hash = link("/applications", app, "jobs", { job: answer.jobId });
      },
    });
    return done;
  };
  return html`<${Page} trail=${[["Jobs", link("/applications", app, "jobs")]]} title=${job ? job.name : "Job"}
    actions=${html`${job && !jobEnded(job) && html`<${Fresh} data=${data} />`}${repeat && html`<button onClick=${again}>Run again</button>`}`}>
    <${Loaded} data=${data}>${(shown) => html`
      <${Card} title="About"><${Facts} rows=${[
        ["Status", html`<${JobStatus} job=${shown} />`],
        ["Progress", html`<${JobProgress} job=${shown} />`],
        shown.output?.file && ["Result", html`<${JobFile} job=${shown} />`],
        shown.output?.file && ["Link works until", html`<${Time} at=${shown.output.file.expires} />`],
        shown.output?.file && ["SHA-256", html`<code>${shown.output.file.sha256}</code>`],
        ["Requested", html`<${Time} at=${shown.runQueuedAt} />`],
        ["Requested by", html`${shown.requestedByType} <code>${shown.requestedById}</code>`],
        ["Started", html`<${Time} at=${shown.runStartedAt} />`],
        ["Ended", shown.runCompletedAt ? html`<${Time} at=${shown.runCompletedAt} />` : "not yet"],
        ["Took", took(shown)],
        ["Works on", html`${shown.resourceType} <code>${shown.resourceId}</code>`],
        ["Id", html`<code>${shown.id}</code>`],
      ].filter(Boolean)} /></${Card}>
      <${Problem} error=${shown.error} />
      <div class="columns">
        ${shown.input && html`<${Card} title="Input"><${Json} value=${shown.input} /></${Card}>`}
        ${shown.output && html`<${Card} title="Output"><${Json} value=${withoutLink(shown.output)} /></${Card}>`}
      </div>`}</${Loaded}>
  </${Page}>`;
}

// The link gives access to the file, so it is only behind the button.
function withoutLink({ file, ...output }) {
  if (!file) return output;
  const { url, ...shown } = file;
  return { file: shown, ...output };
}

// The call that queues such a job again: [path, body]; null for jobs that are not repeated from here, because they
// change or delete what they find.
export function repetition(app, { name, input, resourceId }) {
  const base = ["applications", app];
  const given = Object.fromEntries(Object.entries(input || {}).filter(([, value]) => value !== null));
  switch (name) {
    case "dataTableRows.export": {
      const { query, ...queryOptions } = given;
      return [path(...base, "data-tables", resourceId, "rows", "export"), query ? { query, queryOptions } : { queryOptions }];
    }
    case "devices.export": return [path(...base, "devices", "export"), given];
    case "events.export": return [path(...base, "events", "export"), given];
    case "device.export":
    case "data.export": {
      const { includeDate, includeID, includeBlobData, filePerDevice, ...body } = given;
      const options = { includeDate, includeID, includeBlobData, ...(name === "data.export" ? { filePerDevice } : {}) };
      const target = name === "data.export" ? ["data", "export"] : ["devices", resourceId, "export"];
      return [path(...base, ...target), { ...body, options }];
    }
    default: return null;
  }
}
