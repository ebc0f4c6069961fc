// Archives of an application: what is archived and where, archives now, and the jobs that made them.

import { get, patch, path } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { html } from "../../lib/ui.js";
import { Card, Empty, Facts, Fresh, Time } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { JobStatus, openJob } from "../../parts/job.js";
import { noted } from "../../parts/notes.js";
import { fieldsOf, useDocument } from "../../parts/schema.js";
import { Table } from "../../parts/table.js";
import { admits, deviceFields } from "../keys.js";

const LOOK_MS = 5000;
const SHOWN_MAX = 20;
const OPERATIONS = {
  archiveData: "A day", backfillArchiveData: "All days before", fullDataTablesArchive: "All rows now", fullEventsArchive: "All events now",
};
const isList = (choice) => choice === "whitelist" || choice === "blacklist";
const chosen = (field) => ({ ...field, show: (values) => values.includeDevices && isList(values.mode) });

function fieldsFor(document, app) {
  const { deviceIds, deviceTags } = deviceFields(app);
  const main = fieldsOf(document, "ArchiveConfig", {
    only: ["directory", "delayDays", "includeDevices", "mode", "deviceIds", "deviceTags", "includeEvents", "includeDataTables", "dataTablesMode", "dataTableIds", "includeApplicationExport"],
    more: {
      mode: { label: "Devices", options: [["all", "all devices"], ["whitelist", "only the devices below"], ["blacklist", "all but the devices below"]], show: (values) => values.includeDevices },
      deviceIds: chosen({ ...deviceIds, hint: undefined }), deviceTags: chosen(deviceTags),
      dataTablesMode: { options: [["all", "all data tables"], ["whitelist", "only the data tables below"], ["blacklist", "all but the data tables below"]], show: (values) => values.includeDataTables },
      dataTableIds: { show: (values) => values.includeDataTables && isList(values.dataTablesMode), label: "Data tables by name", type: "records", source: path("applications", app, "data-tables"), hint: undefined },
    },
  });
  const exported = fieldsOf(document, "ArchivedExport", { only: ["includeDevices", "includeDataTableRows", "includeFiles", "includePrivateFiles"], prefix: "applicationExportOptions." })
    .map((each) => ({ ...each, label: `${each.label} in the export`, show: (values) => values.includeApplicationExport }));
  const bucket = fieldsOf(document, "ArchiveBucket", { prefix: "s3." }).map((each) => ({ ...each, required: false, show: (values) => values.inBucket }));
  return [...main, ...exported, { name: "inBucket", label: "Keep it in a bucket of S3, not on this server", type: "checkbox" }, ...bucket];
}

export function Archives({ app, application, reload }) {
  const document = useDocument();
  const source = path("applications", app);
  const config = application.archiveConfig;
  const change = async () => {
    const initial = { mode: "all", dataTablesMode: "all", includeDevices: true, delayDays: 31, ...config, inBucket: Boolean(config?.s3) };
    const done = await openForm("What is archived", {
      fields: fieldsFor(document, app), initial, submit: ({ inBucket, ...values }) => patch(source, { archiveConfig: values }),
    });
    if (done) reload();
  };
  const end = async () => {
    const text = "No further day is archived. What is archived already stays where it is.";
    if (await confirmed({ title: "End archiving?", text, button: "End it", act: () => patch(source, { archiveConfig: null }) })) reload();
  };
  const begin = html`<button data-write class="primary" disabled=${!document} onClick=${change}>Archive this application</button>`;
  if (!config) {
    return html`<${Card} flush><${Empty} title="Nothing is archived yet" call=${{ method: "PATCH", path: source, body: { archiveConfig: { includeEvents: true, delayDays: 31 } } }}>
      <p>An archive has a file for each device and day, on this server or in a bucket. Each day is written when it is old enough.</p><div>${begin}</div></${Empty}></${Card}>`;
  }
  return html`<${Card} title="What is archived" actions=${html`<button data-write disabled=${!document} onClick=${change}>Change</button><button class="danger" onClick=${end}>End archiving</button>`}>
      <${Facts} rows=${[
        ["Place", config.s3 ? `the bucket ${config.s3.bucket}, ${config.s3.region}` : "this server"], ["Directory", config.directory || null],
        ["After", `${config.delayDays || 31} days`],
        ["Devices", config.includeDevices === false ? "no" : admits({ ...config, mode: config.mode || "all" })],
        ["Events", config.includeEvents ? "yes" : "no"],
        ["Data tables", config.includeDataTables ? (isList(config.dataTablesMode) ? `${config.dataTablesMode}: ${config.dataTableIds.join(", ")}` : "all") : "no"],
        ["Export each day", config.includeApplicationExport ? "yes" : "no"],
      ]} /></${Card}>
    <${Jobs} app=${app} />`;
}

// Archives by hand, and the newest jobs of archives.
function Jobs({ app }) {
  const base = path("applications", app);
  const query = { name: { $in: Object.keys(OPERATIONS).map((each) => `application.${each}`) } };
  const data = useData((signal) => get(`${base}/jobLogs`, { query, sortField: "runQueuedAt", sortDirection: "desc", perPage: SHOWN_MAX }, { signal }), [base], { every: LOOK_MS });
  const run = async (operation, given) => {
    let answer;
    if (await noted(get(`${base}/${operation}`, given).then((value) => (answer = value)))) await openJob(OPERATIONS[operation], app, answer.jobId);
    data.reload();
  };
  const day = async () => {
    const chosenDay = await openForm("Archive a day", {
      button: "Archive", fields: [{ name: "date", label: "Day (UTC)", type: "date", required: true, hint: "More than 31 days ago. Files of the day that are there are replaced" }],
      submit: async (values) => values,
    });
    if (chosenDay) await run("archiveData", chosenDay);
  };
  return html`<${Card} title="Archive now"><div class="row">
      <button data-write onClick=${day}>A day</button>
      ${Object.entries(OPERATIONS).slice(1).map(([operation, text]) => html`<button data-write onClick=${() => run(operation)}>${text}</button>`)}</div></${Card}>
    <${Card} flush title="Jobs" actions=${html`<${Fresh} data=${data} />`}>${data.value && (data.value.items.length === 0
      ? html`<p class="empty">No archive was written yet. The server writes the first when a day is old enough.</p>`
      : html`<${Table} label="Jobs of archives" rows=${data.value.items} columns=${[
        { label: "What", render: (job) => OPERATIONS[job.name.split(".")[1]] },
        { label: "Status", render: (job) => html`<${JobStatus} job=${job} />` },
        { label: "Queued", render: (job) => html`<${Time} at=${job.runQueuedAt} />` },
        { label: "Days", render: (job) => [job.input?.date || job.input?.first, job.input?.last].filter(Boolean).join(" to ") },
        { label: "Files", number: true, render: (job) => job.output?.files ?? "" },
        { label: "Rows", number: true, render: (job) => job.output?.rows ?? "" },
        { label: "Error", render: (job) => job.error?.message || "" },
      ]} />`)}</${Card}>`;
}
