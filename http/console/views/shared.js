// A public dashboard for readers without an account: /console#/shared/ID. Nothing is called with a token. The password is
// in memory only.

import { get, path, post } from "../lib/api.js";
import { useData, useTitle } from "../lib/hooks.js";
import { route } from "../lib/router.js";
import { chooseTheme, suggestedTheme, theme } from "../lib/theme.js";
import { html, useEffect, useState } from "../lib/ui.js";
import { Card, Notice } from "../parts/basics.js";
import { Form } from "../parts/form.js";
import { Board } from "./dashboard/board.js";
import { chosen, Controls } from "./dashboard/controls.js";

export function Shared({ dashboard }) {
  const source = path("dashboards", dashboard);
  const [password, setPassword] = useState("");
  const options = { token: false, query: { password } };
  const data = useData(async (signal) => get(source, { password }, { token: false, signal }), [source, password]);
  const record = data.value;
  const title = record?.name || "Shared dashboard";
  useTitle(title);
  useEffect(() => {
    suggestedTheme.value = record?.defaultTheme || null;
    return () => (suggestedTheme.value = null);
  }, [record?.defaultTheme]);
  const other = theme.value === "dark" ? "light" : "dark";
  const body = record && chosen(record, route.value.query);
  const load = (signal) => post(`${source}/data`, body, { ...options, signal });
  return html`<main class="view shared">
    <div class="page-head"><div><h1 tabindex="-1">${title}</h1>${record?.description && html`<p class="lead">${record.description}</p>`}</div></div>
    <div class="stack">
      ${!record && !data.error && html`<p class="quiet" role="status">Loading.</p>`}
      ${!record && data.error && html`<${Refused} error=${data.error} given=${password} set=${setPassword} retry=${data.reload} />`}
      ${record && (record.blocks.length ? html`<${Controls} dashboard=${record} query=${route.value.query} />
        <${Board} dashboard=${record} body=${body} load=${load} changed=${data.reload} />`
        : html`<${Notice}>This dashboard has no blocks yet.</${Notice}>`)}
    </div>
    ${(record || data.error) && html`<p class="foot quiet row">Shown by <a href="#/">Trunkline</a><button class="small" onClick=${() => chooseTheme(other)}>${other === "dark" ? "Dark" : "Light"}</button></p>`}
  </main>`;
}

// Why the dashboard is not shown. 401 asks for its password.
function Refused({ error, given, set, retry }) {
  if (error.status !== 401) {
    const said = error.status === 404 ? "There is no public dashboard at this link. Perhaps it is private now; then who gave you the link can share it again." : error.message;
    return html`<${Card}><p role="alert">${said}</p><div class="row"><button onClick=${retry}>Try again</button><a href="#/">Log in to the console</a></div></${Card}>`;
  }
  const submit = ({ password }) => {
    if (password === given) retry();
    else set(password);
  };
  return html`<${Card} title="This dashboard has a password">
    ${given && html`<p class="quiet" role="alert">${error.message}</p>`}
    <${Form} fields=${[{ name: "password", label: "Password", type: "password", required: true, autocomplete: "current-password" }]} button="Show the dashboard" submit=${submit} />
  </${Card}>`;
}
