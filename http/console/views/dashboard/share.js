// Sharing a dashboard: whether it is public, its password, and its link.

import { html, useState } from "../../lib/ui.js";
import { Copy, Notice, Problem } from "../../parts/basics.js";
import { openDialog } from "../../parts/dialog.js";
import { Form } from "../../parts/form.js";

// `change(changes)` stores them and gives a promise.
export function openSharing(dashboard, change) {
  return openDialog("Share this dashboard", (close) => html`<${Share} dashboard=${dashboard} change=${change} close=${close} />`);
}

const PASSWORD = { name: "password", label: "Password", type: "password", autocomplete: "new-password", hint: "12 characters or more, with a lower-case and an upper-case letter, a digit and a sign." };

function Share({ dashboard: given, change, close }) {
  const [dashboard, setDashboard] = useState(given);
  const [error, setError] = useState(null);
  const store = async (changes) => setDashboard(await change(changes));
  const apply = (changes) => store(changes).then(() => setError(null), setError);
  if (!dashboard.public) {
    const submit = (values) => store({ public: true, ...(values.password ? { password: values.password } : {}) });
    return html`<div class="stack">
      <p>Whoever has the link of a public dashboard sees what its blocks show, without an account. With a password they need that too.</p>
      <${Notice} tone="warn">The configuration of the blocks is readable as well, such as their queries and the ids of devices.</${Notice}>
      <${Form} fields=${[PASSWORD]} button="Make it public" submit=${submit} />
      <div class="buttons"><button onClick=${() => close()}>Close</button></div></div>`;
  }
  const url = `${location.origin}/console#/shared/${dashboard.id}`;
  return html`<div class="stack">
    <p>This dashboard is public${dashboard.isPasswordProtected ? ", with a password" : ", without a password"}. Its link:</p>
    <div class="row"><a class="break" href=${url} target="_blank" rel="noopener">${url}</a><${Copy} text=${url} label="Copy the link" /></div>
    <${Form} key=${String(dashboard.isPasswordProtected)} fields=${[{ ...PASSWORD, label: dashboard.isPasswordProtected ? "New password" : "Password", required: true }]} button="Set the password" submit=${store} />
    <${Problem} error=${error} />
    <div class="buttons">
      ${dashboard.isPasswordProtected && html`<button onClick=${() => apply({ password: null })}>Remove the password</button>`}
      <button class="danger" onClick=${() => apply({ public: false })}>Make it private</button>
      <button onClick=${() => close()}>Close</button></div></div>`;
}
