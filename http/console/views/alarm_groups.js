// Groups of people whom alarm rules tell, and one of them.

import { get, patch, path, post } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { go } from "../lib/router.js";
import { session } from "../lib/session.js";
import { html } from "../lib/ui.js";
import { Badge, Empty, Page } from "../parts/basics.js";
import { openForm } from "../parts/form.js";
import { RecordPage } from "../parts/records.js";
import { RecordTable } from "../parts/table.js";
import { groups, home, Views } from "./alarms/tabs.js";

const GROUP = { name: "Night shift", emails: ["night.shift@example.com"] };
const LEAD = "People whom alarm rules tell, under a name. Who changes a group changes all its rules.";

// Who may be in a group besides addresses: [id, e-mail address] of the members of the organization, or of the owner.
async function people(app) {
  const { ownerId, ownerType } = await get(path("applications", app));
  if (ownerType !== "organization") return ownerId === session.value.userId ? [[ownerId, session.value.email]] : [];
  const org = await get(path("orgs", ownerId)).catch(() => null); // a token of the application does not see it
  return (org?.members || []).map((each) => [each.userId, each.email]);
}

async function fieldsOf(app, group) {
  const known = await people(app);
  const others = (group?.userIds || []).filter((id) => !known.some(([each]) => each === id)).map((id) => [id, `${id}, who is not told`]);
  const options = [...known, ...others];
  return [
    { name: "name", label: "Name", required: true, placeholder: "Night shift" },
    { name: "emails", label: "Mail to", type: "lines", rows: 3, blank: [], hint: "Addresses, one a line" },
    ...(options.length ? [{ name: "userIds", label: "Users", type: "choices", options, blank: [], hint: "Each is told as long as that user may read this application" }] : []),
    { name: "description", label: "Description", blank: group?.description === undefined ? undefined : null },
  ];
}

async function create(app) {
  const made = await openForm("Create a group", { fields: await fieldsOf(app), button: "Create", submit: (values) => post(groups(app), values) });
  if (made) go(home(app, "groups", made.id));
}

const Create = ({ app }) => html`<button class="primary" data-create onClick=${() => create(app)}>Create a group</button>`;

const told = (row) => row.tells.join(", ") || "nobody";

function Untold({ ids }) {
  return ids.length > 0 && html`<${Badge} tone="warn">${plural(ids.length, "user")} not told</${Badge}>`;
}

export function AlarmGroups({ app }) {
  const empty = html`<${Empty} title="There are no groups yet" call=${{ method: "POST", path: groups(app), body: GROUP }}>
    <p>A group is a night shift, or who is on call: addresses and users whom several rules tell.</p><div><${Create} app=${app} /></div></${Empty}>`;
  return html`<${Page} title="Alarm groups" lead=${LEAD} trail=${[["Alarms", home(app)]]} actions=${html`<${Create} app=${app} />`}>
    <${Views} app=${app} current="groups" />
    <${RecordTable} noun="group" source=${groups(app)} empty=${empty} href=${(row) => home(app, "groups", row.id)} columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "Tells", render: (row) => html`<span class="break">${told(row)}</span> <${Untold} ids=${row.untoldUserIds} />` },
    ]} />
  </${Page}>`;
}

export function AlarmGroup({ app, group }) {
  const source = `${groups(app)}/${group}`;
  const change = async (record, reload) => {
    const done = await openForm("Change this group", { fields: await fieldsOf(app, record), initial: record, changesOnly: true, submit: (values) => patch(source, values) });
    if (done) reload();
  };
  return html`<${RecordPage} noun="alarm group" source=${source} trail=${[["Alarms", home(app)], ["Groups", home(app, "groups")]]} home=${home(app, "groups")}
    actions=${(record, reload) => html`<button data-write onClick=${() => change(record, reload)}>Change</button>`}
    facts=${(record) => [
      ["Tells", html`<span class="break">${told(record)}</span>`],
      record.untoldUserIds.length && ["Not told", `${plural(record.untoldUserIds.length, "user")} who may not read this application any more`],
    ].filter(Boolean)}
  />`;
}
