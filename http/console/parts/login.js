// The login: e-mail address, password, and the code of a second factor where the user has one.

import { request } from "../lib/api.js";
import { ended, logIn } from "../lib/session.js";
import { html, useId, useState } from "../lib/ui.js";
import { useTitle } from "../lib/hooks.js";
import { Notice, Problem } from "./basics.js";

const focused = (input) => input?.focus();

export function LogIn() {
  useTitle("Log in");
  const [needsCode, setNeedsCode] = useState(false);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const submit = async (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    setBusy(true);
    setError(null);
    try {
      await logIn(request, {
        email: given.get("email").trim(), password: given.get("password"), twoFactorCode: given.get("code")?.replaceAll(" ", ""),
      });
    } catch (failure) {
      const missing = failure.message.startsWith("twoFactorCode: is missing");
      if (missing) setNeedsCode(true);
      setError(missing ? null : failure);
    }
    setBusy(false);
  };
  return html`<main class="login">
    <h1 class="brand"><img src="/favicon.svg" alt="" width="32" height="32" /> Trunkline</h1>
    ${ended.value && html`<${Notice} tone="warn">${ended.value}</${Notice}>`}
    <form class="card form" onSubmit=${submit}>
      <div class="field"><label for=${id + "e"}>E-mail address</label>
        <input id=${id + "e"} name="email" type="email" autocomplete="username" required autofocus /></div>
      <div class="field"><label for=${id + "p"}>Password</label>
        <input id=${id + "p"} name="password" type="password" autocomplete="current-password" required /></div>
      ${needsCode && html`<div class="field"><label for=${id + "c"}>Code of your second factor</label>
        <input id=${id + "c"} name="code" autocomplete="one-time-code" inputmode="numeric" required ref=${focused} />
        <span class="hint">Six digits of your app, or a recovery code.</span></div>`}
      <${Problem} error=${error} />
      <button class="primary" disabled=${busy}>Log in</button>
    </form>
    <p class="quiet">The first start of the server prints the first user and the password. The API is described at <a href="/docs">/docs</a>.</p>
  </main>`;
}
