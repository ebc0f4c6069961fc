// Copies of an application: exports as a bundle, imports, clones, and templates that are applied to it.

import { access, organizationsToOwn } from "../../lib/access.js";
import { get, ownPath, patch, path, post } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { go, link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Loaded, Time } from "../../parts/basics.js";
import { openDialog } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { openJob } from "../../parts/job.js";
import { note } from "../../parts/notes.js";
import { Table } from "../../parts/table.js";
import { bundleField, sendBundle } from "./bundle.js";

const SHOWN_MAX = 20;
const CONTENTS = [
  { name: "includeDevices", label: "With its devices, without what they reported", type: "checkbox" },
  { name: "includeDataTableRows", label: "With the rows of its data tables", type: "checkbox" },
  { name: "includeFiles", label: "With its files", type: "checkbox" },
  { name: "includePrivateFiles", label: "With its private files", type: "checkbox" },
];
const CONFLICTS = [
  ["error", "refuse the import"], ["create", "create it beside the other"], ["retain", "keep the one that is there"], ["replace", "replace the one that is there"],
];

export function Copies({ app, application, reload }) {
  const base = path("applications", app);
  const logs = useData((signal) => get(`${base}/importLogs`, { limit: SHOWN_MAX }, { signal }), [base]);
  const changed = () => {
    reload();
    logs.reload();
  };
  return html`
    <${Card} title="Export"><p>Writes the application into one zip file, a bundle. It has no secrets, and nothing of what devices reported.</p>
      <div><button onClick=${() => exported(app, base)}>Export</button></div></${Card}>
    <${Card} title="Import"><p>Adds what a bundle has to this application. All of it is checked first; if anything is wrong, nothing is changed.</p>
      <div><button data-write onClick=${() => imported(app, base, changed)}>Import a bundle</button></div><${Imports} logs=${logs} /></${Card}>
    <${Card} title="Clone"><p>Makes a new application with everything that an export of this one has.</p>
      <div><button data-write onClick=${() => cloned(app, base, application)}>Clone</button></div></${Card}>
    <${Templates} app=${app} application=${application} changed=${changed} />`;
}

// What comes after a call that may have queued a job: the job, or a note.
async function ended(title, app, answer, text) {
  if (answer.jobId) await openJob(title, app, answer.jobId);
  else note(text);
}

async function exported(app, base) {
  const answer = await openForm("Export", { fields: CONTENTS, button: "Export", submit: (values) => post(`${base}/export`, values) });
  if (!answer) return;
  if (answer.jobId) {
    await openJob("Export", app, answer.jobId);
    return;
  }
  await openDialog("The bundle is ready", (close) => html`<div class="stack"><p>Its link works without a token until the file expires.</p>
    <div class="buttons"><button onClick=${() => close()}>Close</button><a class="button primary" href=${ownPath(answer.url)} download>Download</a></div></div>`);
}

async function imported(app, base, changed) {
  let file = null;
  const answer = await openForm("Import a bundle", {
    button: "Import", extra: bundleField((given) => (file = given)),
    fields: [
      { name: "conflictBehavior", label: "If something is there already", type: "select", options: CONFLICTS },
      { name: "dryRun", label: "Only check it", type: "checkbox" },
    ],
    submit: async (values) => ({ ...(await sendBundle(`${base}/import`, file, { options: JSON.stringify(values) })), onlyChecked: values.dryRun }),
  });
  if (!answer) return;
  if (answer.onlyChecked) await ended("Check of a bundle", app, answer, "The bundle can be imported. Nothing was changed.");
  else await ended("Import", app, answer, "The bundle was imported.");
  changed();
}

function Imports({ logs }) {
  return html`<${Loaded} data=${logs}>${(items) => items.length > 0 && html`<${Table} label="Imports" rows=${items} columns=${[
    { label: "Queued", render: (each) => html`<${Time} at=${each.runQueuedAt} />` },
    { label: "Source", render: (each) => each.importSourceType },
    { label: "Status", render: (each) => html`<${Badge} tone=${each.status === "completed" ? "good" : each.error ? "bad" : ""}>${each.status}</${Badge}>` },
    { label: "Only checked", render: (each) => (each.dryRun ? "yes" : "no") },
    { label: "Error", render: (each) => each.error?.message || "" },
  ]} />`}</${Loaded}>`;
}

const OWN = "own";
const ownerOf = (id) => (id === OWN ? { ownerType: "user" } : id ? { ownerType: "organization", ownerId: id } : {});

async function cloned(app, base, application) {
  const organizations = await organizationsToOwn().catch((error) => note(error.message, "bad"));
  if (!organizations) return;
  const owners = [
    ...(access.value.may === "manage" ? [["", "who owns this application"]] : []),
    ...(application.ownerType === "organization" ? [[OWN, "your account"]] : []),
    ...organizations.filter((each) => each.id !== application.ownerId).map((each) => [each.id, each.name]),
  ];
  const answer = await openForm("Clone", {
    button: "Clone",
    fields: [
      { name: "ownerId", label: "Owner of the clone", type: "select", options: owners },
      ...CONTENTS, { name: "dryRun", label: "Only check it", type: "checkbox" },
    ],
    submit: ({ ownerId, ...values }) => post(`${base}/clone`, { ...values, ...ownerOf(ownerId) }),
  });
  if (!answer) return;
  if (answer.application) {
    note(`${application.name} was cloned.`);
    go(link("/applications", answer.application.id, "settings"));
  } else {
    await ended("Clone", app, answer, "It can be cloned. Nothing was made.");
  }
}

// The templates of the server, and those that were applied.
function Templates({ app, application, changed }) {
  const data = useData((signal) => get("/applicationTemplates", { perPage: 100 }, { signal }), []);
  const apply = async (template) => {
    const answer = await openForm(`Apply ${template.name}`, {
      button: "Apply", fields: [], extra: html`<p>${template.description}</p><p>All that the template describes is created here, or nothing of it.</p>`,
      submit: () => patch(path("applications", app, "applyTemplate"), { templateId: template.id }),
    });
    if (!answer) return;
    await ended("Apply a template", app, answer, `${template.name} was applied.`);
    changed();
  };
  const applied = application.appliedTemplateIds || [];
  return html`<${Card} flush title="Templates"><${Loaded} data=${data}>${({ items }) => (items.length === 0
    ? html`<p class="empty">The operator of the server has no templates.</p>`
    : html`<${Table} label="Templates" rows=${items} columns=${[
      { label: "Name", render: (each) => each.name },
      { label: "Description", render: (each) => each.description },
      { label: "Applied", render: (each) => (applied.includes(each.id) ? html`<${Badge} tone="good">applied</${Badge}>` : "") },
      { label: html`<span class="hidden-label">Actions</span>`, render: (each) => html`<button data-write class="small" aria-label=${`Apply ${each.name}`} onClick=${() => apply(each)}>Apply</button>` },
    ]} />`)}</${Loaded}></${Card}>`;
}
