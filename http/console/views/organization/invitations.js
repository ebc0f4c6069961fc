// Invitations to an organization that were not answered yet.

import { del, get, path, post, queryString } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { html, useId } from "../../lib/ui.js";
import { Badge, Card, Empty, Loaded, Time } from "../../parts/basics.js";
import { confirmed, openDialog } from "../../parts/dialog.js";
import { note } from "../../parts/notes.js";
import { Table } from "../../parts/table.js";
import { RolesForm } from "./roles.js";
import { ends } from "./words.js";

export function Invitations({ org, reload }) {
  const target = path("orgs", org.id, "invites");
  const data = useData((signal) => get(target, {}, { signal }), [target]);
  const changed = () => { data.reload(); reload(); };
  const invite = async () => {
    const done = await openDialog("Invite somebody", (close) => html`<${RolesForm} org=${org} initial=${{}} button="Invite" close=${close}
      before=${html`<${Address} />`} submit=${(roles, given) => post(target, { email: given("email").trim(), ...roles })} />`);
    if (done) { note("The mail with the invitation is sent."); changed(); }
  };
  const cancel = async (row) => {
    const done = await confirmed({
      title: "Cancel this invitation?", text: html`The mail to <b>${row.email}</b> no longer works.`, button: "Cancel the invitation",
      act: () => del(target + queryString({ inviteId: row.id })),
    });
    if (done) changed();
  };
  const button = html`<button class="primary" data-create onClick=${invite}>Invite somebody</button>`;
  const columns = [
    { label: "Address", render: (row) => row.email },
    { label: "Role", render: (row) => html`<${Badge}>${row.role}</${Badge}>` },
    { label: "Sent", render: (row) => html`<${Time} at=${row.inviteDate} />` },
    { label: "Valid until", render: (row) => (row.hasExpired ? html`<${Badge} tone="warn">expired</${Badge}>` : html`<${Time} at=${ends(row)} />`) },
    { label: "Actions", render: (row) => html`<button class="small danger" aria-label=${`Cancel the invitation of ${row.email}`} onClick=${() => cancel(row)}>Cancel</button>` },
  ];
  const empty = html`<${Empty} title="There are no open invitations" call=${{ method: "POST", path: target, body: { email: "colleague@example.com", role: "view" } }}>
    <p>Whoever is invited gets a mail, and answers it with an account of this server.</p><div>${button}</div></${Empty}>`;
  return html`<${Loaded} data=${data}>${(rows) => html`<${Card} flush title=${rows.length ? "Invitations" : undefined} actions=${rows.length > 0 && button}>
    ${rows.length ? html`<${Table} label="Invitations" columns=${columns} rows=${rows} />` : empty}</${Card}>`}</${Loaded}>`;
}

function Address() {
  const id = useId();
  return html`<div class="field"><label for=${id}>E-mail address</label><input id=${id} name="email" type="email" autocomplete="off" /></div>`;
}
