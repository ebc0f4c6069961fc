// The members of an organization and their roles.

import { del, patch, path, queryString } from "../../lib/api.js";
import { plural } from "../../lib/format.js";
import { go, link } from "../../lib/router.js";
import { session } from "../../lib/session.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Notice } from "../../parts/basics.js";
import { confirmed, openDialog } from "../../parts/dialog.js";
import { note } from "../../parts/notes.js";
import { Table } from "../../parts/table.js";
import { RolesForm } from "./roles.js";

export function Members({ org, isAdmin, reload }) {
  const target = path("orgs", org.id, "member");
  const isMe = (member) => member.userId === session.value.userId;
  const change = async (member) => {
    const done = await openDialog(`Roles of ${member.email}`, (close) => html`<${RolesForm} org=${org} initial=${member} button="Save" close=${close}
      submit=${(roles) => patch(target, { userId: member.userId, ...roles })} />`);
    if (done) { note("The roles are saved."); reload(); }
  };
  const remove = async (userId, email, mine) => {
    const done = await confirmed({
      title: mine ? `Leave ${org.name}?` : "Remove this member?", button: mine ? "Leave" : "Remove",
      text: mine ? "You lose access to everything that the organization owns. An administrator can invite you again." : html`<b>${email}</b> loses access to everything that the organization owns, at once.`,
      act: () => del(target + queryString({ userId })),
    });
    if (!done) return;
    if (mine) go(link("/organizations"));
    else reload();
  };
  const columns = [
    { label: "Member", render: (row) => html`${row.email}${isMe(row) && html` <span class="quiet">(you)</span>`}<div class="quiet">${[row.firstName, row.lastName].filter(Boolean).join(" ")}</div>` },
    { label: "Role", render: (row) => html`<${Badge} tone=${row.role === "admin" ? "accent" : ""}>${row.role}</${Badge}>` },
    { label: "In single applications", render: (row) => elsewhere(row.applicationRoles, "application") },
    { label: "In single dashboards", render: (row) => elsewhere(row.dashboardRoles, "dashboard") },
    { label: "Two-factor", render: (row) => (row.twoFactorAuthEnabled ? html`<${Badge} tone="good">enabled</${Badge}>` : html`<${Badge}>not enabled</${Badge}>`) },
    { label: "Actions", render: (row) => html`<span class="row">
      ${isAdmin && html`<button class="small" aria-label=${`Roles of ${row.email}`} onClick=${() => change(row)}>Roles</button>`}
      ${isMe(row) ? html`<button class="small danger" onClick=${() => remove(row.userId, row.email, true)}>Leave</button>`
        : isAdmin && html`<button class="small danger" aria-label=${`Remove ${row.email}`} onClick=${() => remove(row.userId, row.email, false)}>Remove</button>`}</span>` },
  ];
  if (!org.members) {
    return html`<${Notice}>Your role in this organization shows no members.
      <button class="small danger" onClick=${() => remove(session.value.userId, "", true)}>Leave</button></${Notice}>`;
  }
  return html`<${Card} flush title=${plural(org.members.length, "member")} actions=${isAdmin && html`<a class="button" href=${link("/organizations", org.id, "invitations")}>Invite somebody</a>`}>
    <${Table} label="Members" columns=${columns} rows=${org.members} rowKey=${(row) => row.userId} />
  </${Card}>`;
}

function elsewhere(roles, what) {
  if (!roles.length) return html`<span class="quiet">as the role</span>`;
  return plural(roles.length, `${what} with another role`, `${what}s with other roles`);
}
