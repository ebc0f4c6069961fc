// The organizations of the user, and the invitations to others.

import { get, path, post } from "../lib/api.js";
import { count } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { link } from "../lib/router.js";
import { html, useState } from "../lib/ui.js";
import { Card, Notice, Problem, Time } from "../parts/basics.js";
import { noted } from "../parts/notes.js";
import { RecordList } from "../parts/records.js";
import { ends, MFA_MODES } from "./organization/words.js";

export function Organizations() {
  const [refresh, setRefresh] = useState(0);
  const invitations = useData(async (signal) => {
    const { emailVerified } = await get("/me", { summaryInclude: "orgCount" }, { signal });
    return emailVerified ? get("/me/invites", {}, { signal }) : null;
  }, []);
  return html`<${RecordList} of=${invitations}
    title="Organizations" noun="organization" source="/orgs"
    lead="An organization owns applications and dashboards together. Its members have roles, and a log says who changed what."
    above=${html`<${MyInvitations} data=${invitations} joined=${() => setRefresh(refresh + 1)} />`}
    columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "Members", number: true, render: (row) => count(row.summary?.memberCount) },
      { label: "Applications", number: true, render: (row) => count(row.summary?.appCount) },
      { label: "Two-factor", render: (row) => MFA_MODES[row.mfaMode] },
      { label: "Created", sort: "creationDate", render: (row) => html`<${Time} at=${row.creationDate} />` },
    ]}
    fields=${[
      { name: "name", label: "Name", required: true },
      { name: "description", label: "Description", type: "longtext" },
      { name: "mfaMode", label: "Two-factor authentication", type: "select", options: Object.entries(MFA_MODES) },
    ]}
    example=${{ name: "My organization" }}
    href=${(row) => link("/organizations", row.id)}
    more=${{ refresh }}
  />`;
}

// Invitations to the user's address. They are null while the address is not verified.
function MyInvitations({ data, joined }) {
  const [sent, setSent] = useState(false);
  const answer = async (invite, action, text) => {
    if (!(await noted(post(path("me", "invites", invite.id), { action }), text))) return;
    data.reload();
    if (action === "accept") joined();
  };
  const verify = async () => {
    if (await noted(post("/me/verify-email"), "The mail is sent.")) setSent(true);
  };
  if (data.error) return html`<${Problem} error=${data.error} retry=${data.reload} />`;
  if (data.value === null) {
    return html`<${Notice}>Invitations to you are not shown here, because your e-mail address is not verified.
      ${sent ? " The mail is sent; reload this page when you have opened its link." : html` <button class="small" onClick=${verify}>Send a mail that verifies it</button>`}</${Notice}>`;
  }
  if (!data.value?.length) return null;
  return html`<${Card} title="Invitations">
    <ul class="invitations">${data.value.map((invite) => html`<li key=${invite.id} class="spread">
      <div><b>${invite.orgName}</b> with the role ${invite.role}
        <p class="quiet">${invite.invitedBy && html`From ${invite.invitedBy.fullName || invite.invitedBy.email}. `}${invite.expired ? "It has expired." : html`Valid until <${Time} at=${ends(invite)} />.`}
          ${invite.requiresMFA && " The organization requires two-factor authentication."}</p></div>
      <div class="row">
        ${!invite.expired && html`<button class="primary" onClick=${() => answer(invite, "accept", `You belong to ${invite.orgName}.`)}>Accept</button>
          <button onClick=${() => answer(invite, "reject", "The invitation is declined.")}>Decline</button>`}
        <button class="plain" onClick=${() => answer(invite, "dismiss", "The invitation is hidden. Its mail still answers it.")}>Hide</button>
      </div></li>`)}</ul>
  </${Card}>`;
}
