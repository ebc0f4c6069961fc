// What an organization is called and requires, and its end.

import { del, patch, path } from "../../lib/api.js";
import { go, link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Card, Facts } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { openForm } from "../../parts/form.js";
import { stamps } from "../../parts/records.js";
import { openTransfer } from "../../parts/transfer.js";
import { MFA_MODES } from "./words.js";

export function Settings({ org, isAdmin, reload }) {
  const target = path("orgs", org.id);
  const change = async () => {
    const answer = await openForm("Change this organization", {
      fields: [
        { name: "name", label: "Name", required: true },
        { name: "description", label: "Description", type: "longtext", blank: "" },
        { name: "mfaMode", label: "Two-factor authentication", type: "select", options: Object.entries(MFA_MODES), hint: "Members without it lose access until they enable it." },
      ],
      initial: org, changesOnly: true, submit: (values) => patch(target, values),
    });
    if (answer) reload();
  };
  const remove = async () => {
    const done = await confirmed({
      title: "Delete this organization?", typed: org.name, act: () => del(target),
      text: "It must not own applications or dashboards any more. Its members, invitations and audit log are deleted for good.",
    });
    if (done) go(link("/organizations"));
  };
  return html`<${Card} title="About" actions=${isAdmin && html`<button onClick=${change}>Change</button>`}><${Facts} rows=${[
    ["Name", org.name],
    ["Description", org.description || null],
    ["Two-factor authentication", MFA_MODES[org.mfaMode]],
    ["Applications", org.summary?.appCount],
    ["Members", org.summary?.memberCount],
    ...stamps(org),
  ]} /></${Card}>
  ${isAdmin && html`<${Card} title="Delete"><div class="stack">
    <p>An organization that owns nothing can be deleted. Transfer or delete its applications and dashboards first.</p>
    <div class="row"><button onClick=${async () => (await openTransfer({ org })) && reload()}>Transfer to another owner</button>
      <button class="danger" onClick=${remove}>Delete the organization</button></div></div></${Card}>`}`;
}
