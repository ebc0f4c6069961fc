// The applications that the user can read, and the start of the console.

import { get, path } from "../lib/api.js";
import { rememberedApplication } from "../lib/application.js";
import { count } from "../lib/format.js";
import { go, link } from "../lib/router.js";
import { html, useEffect } from "../lib/ui.js";
import { useData } from "../lib/hooks.js";
import { Fresh, Loaded, Time } from "../parts/basics.js";
import { Health } from "../parts/health.js";
import { note } from "../parts/notes.js";
import { RecordList } from "../parts/records.js";
import { Overall, sentence, useHealth } from "./applications/health.js";

// Opens the overview of the application that was open last on this machine, or of the only one.
export function Start() {
  const data = useData(lastOpened, []);
  useEffect(() => {
    if (!data.value || !["", "#/"].includes(location.hash)) return; // nobody has gone elsewhere meanwhile
    const { last } = data.value;
    location.replace(last ? link("/applications", last.id) : link("/applications"));
  }, [data.value]);
  return html`<${Loaded} data=${data}>${() => null}</${Loaded}>`;
}

async function lastOpened(signal) {
  const { items, totalCount } = await get("/applications", { perPage: 100 }, { signal });
  const id = rememberedApplication();
  const found = items.find((each) => each.id === id) || (items.length === 1 && items[0]);
  if (found || !id || totalCount === items.length) return { last: found };
  return { last: await get(path("applications", id), {}, { signal }).catch(() => null) };
}

// Create one in another way, and open it. A large one is made by a job: it is in the list when it is complete.
async function createBy(way) {
  try {
    const answer = await (await import("./applications/create.js"))[way]();
    const id = answer?.application?.id || answer?.id;
    if (id) go(link("/applications", id));
    else if (answer?.jobId) note("A job makes the application. It is in the list when it is complete.");
  } catch (error) {
    note(error.message, "bad");
  }
}

export function Applications() {
  const data = useHealth(), found = data.value;
  const health = new Map(found?.items.map((each) => [each.applicationId, each]));
  return html`<${RecordList}
    title="Applications" tab=${found?.items.length ? sentence(found) : "Applications"} noun="application" source="/applications"
    above=${html`<${Overall} found=${found} />`}
    lead="An application holds devices and everything that belongs to them."
    columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "Health", render: (row) => html`<${Verdict} health=${health.get(row.id)} />` },
      { label: "Devices", number: true, render: (row) => count(row.summary?.deviceCount) },
      { label: "Workflows", number: true, render: (row) => count(row.summary?.flowCount) },
      { label: "Owner", render: (row) => row.ownerType },
      { label: "Created", sort: "creationDate", render: (row) => html`<${Time} at=${row.creationDate} />` },
    ]}
    fields=${[
      { name: "name", label: "Name", required: true },
      { name: "description", label: "Description", type: "longtext" },
    ]}
    example=${{ name: "My application" }}
    actions=${html`<${Fresh} data=${data} /><button onClick=${() => createBy("createFromTemplate")}>From a template</button>
      <button onClick=${() => createBy("createFromBundle")}>From a bundle</button>`}
    href=${(row) => link("/applications", row.id)}
  />`;
}

function Verdict({ health }) {
  if (!health) return html`<span class="quiet">…</span>`;
  return html`<${Health} health=${health.verdict} />`;
}
