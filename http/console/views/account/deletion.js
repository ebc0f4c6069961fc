// The end of the account, and of all that belongs to it.

import { post } from "../../lib/api.js";
import { plural } from "../../lib/format.js";
import { endSession } from "../../lib/session.js";
import { html } from "../../lib/ui.js";
import { Card } from "../../parts/basics.js";
import { openForm } from "../../parts/form.js";
import { openTransfer } from "../../parts/transfer.js";
import { credentials } from "./credentials.js";

export function Deletion({ me, reload }) {
  const remove = async () => {
    const answer = await openForm("Delete your account", {
      fields: [{ name: "email", label: "To confirm, type your e-mail address", required: true, hint: me.email }, ...credentials(me)],
      button: "Delete my account",
      submit: (values) => {
        if (values.email !== me.email) throw new Error(`email: is not ${me.email}.`);
        return post("/me/delete", values, { proof: true });
      },
    });
    if (answer) endSession("Your account is deleted.");
  };
  const { appCount, apiTokenCount } = me.summary || {};
  return html`<${Card} title="Delete your account"><div class="stack">
    <p>This deletes your account for good, with your ${plural(appCount, "application")} and all that they contain, your dashboards, and your ${plural(apiTokenCount, "API token")}.
      What organizations own stays. First transfer to others what they still need.</p>
    <p>The only user of a server, and the only administrator of an organization, cannot be deleted.</p>
    <div class="row"><button onClick=${async () => (await openTransfer({})) && reload()}>Transfer to another owner</button>
      <button class="danger" onClick=${remove}>Delete my account</button></div></div></${Card}>`;
}
