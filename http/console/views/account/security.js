// How the user logs in: the password, the second factor, and the logins of now.

import { patch, request, serverTime } from "../../lib/api.js";
import { changePassword, endSession } from "../../lib/session.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Facts, Snippet, Time } from "../../parts/basics.js";
import { openDialog } from "../../parts/dialog.js";
import { Form, openForm } from "../../parts/form.js";
import { note } from "../../parts/notes.js";
import { codeField, credentials } from "./credentials.js";
import { QrCode } from "./qr_code.js";

export function Security({ me, reload }) {
  return html`<${Password} me=${me} reload=${reload} /><${SecondFactor} me=${me} reload=${reload} /><${LogIns} me=${me} />`;
}

function Password({ me, reload }) {
  const change = async () => {
    const answer = await openForm("Change the password", {
      fields: [
        ...credentials(me),
        { name: "newPassword", label: "New password", type: "password", required: true, autocomplete: "new-password", hint: "12 characters or more, with a lower-case and an upper-case letter, a digit and a sign." },
        { name: "again", label: "New password, again", type: "password", required: true, autocomplete: "new-password" },
        { name: "invalidateExistingTokens", label: "End all other logins, and all your API tokens", type: "checkbox" },
      ],
      button: "Change the password",
      submit: ({ again, ...body }) => {
        if (again !== body.newPassword) throw new Error("again: the two new passwords are not equal.");
        return changePassword(request, body);
      },
    });
    if (answer) { note("The password is changed."); reload(); }
  };
  return html`<${Card} title="Password" actions=${html`<button onClick=${change}>Change the password</button>`}>
    <${Facts} rows=${[["Last changed", html`<${Time} at=${me.passwordLastUpdated} />`]]} /></${Card}>`;
}

function SecondFactor({ me, reload }) {
  const enable = async () => {
    const key = await patch("/me/generateTwoFactorAuth").catch((error) => note(error.message, "bad"));
    if (!key) return;
    const fields = [
      { ...codeField, label: "Code that the app shows", hint: "Six digits." },
      { name: "password", label: "Current password", type: "password", required: true, autocomplete: "current-password" },
    ];
    const submit = (values) => patch("/me/enableTwoFactorAuth", { ...values, twoFactorAuthKey: key.key }, { proof: true });
    const answer = await openDialog("Enable two-factor authentication", (close) => html`<div class="stack">
      <${Key} given=${key} /><${Form} ...${{ fields, submit, close, button: "Enable" }} /></div>`);
    if (!answer) return;
    reload();
    await openDialog("Recovery codes", (close) => html`<div class="stack">
      <p>Two-factor authentication is enabled. Each of these codes replaces the app once. <b>They are shown now and never again.</b></p>
      <${Snippet} text=${answer.recoveryCodes.join("\n")} label="Recovery codes" />
      <div class="buttons"><button class="primary" onClick=${() => close(true)}>I have kept them</button></div></div>`);
  };
  const disable = async () => {
    const answer = await openForm("Disable two-factor authentication", {
      fields: credentials(me), button: "Disable", submit: (values) => patch("/me/disableTwoFactorAuth", values, { proof: true }),
    });
    if (answer) { note("Two-factor authentication is disabled."); reload(); }
  };
  const on = me.twoFactorAuthEnabled;
  return html`<${Card} title="Two-factor authentication" actions=${on ? html`<button class="danger" onClick=${disable}>Disable</button>` : html`<button class="primary" onClick=${enable}>Enable</button>`}>
    <p>${on ? html`<${Badge} tone="good">enabled</${Badge}> A login needs the password and a code of your app.`
      : html`<${Badge}>not enabled</${Badge}> With it, a login also needs a code that an app on your telephone makes (TOTP).`}</p></${Card}>`;
}

// The new key, for the camera of a telephone and as text.
const Key = ({ given }) => html`<div class="row key">
  <${QrCode} text=${given.keyUri} label="The key as a QR code" />
  <div class="stack"><p>Scan this with an app for codes, or <a href=${given.keyUri}>open it in one</a>, or type the key:</p>
    <${Snippet} text=${given.key} label="The key" /></div></div>`;

function LogIns({ me }) {
  const end = async () => {
    const answer = await openForm("End all logins", {
      fields: credentials(me), button: "End all logins",
      extra: html`<p>This ends every login of yours, this one included, and all your API tokens. Log in again afterwards.</p>`,
      submit: async (currentCredentials) => patch("/me", { tokenCutoff: await serverTime(), currentCredentials }, { proof: true }),
    });
    if (answer) endSession("You have ended all logins.");
  };
  return html`<${Card} title="Logins" actions=${html`<button class="danger" onClick=${end}>End all logins</button>`}>
    <p>Log out ends this login alone. If a token may be in wrong hands, end all of them.</p>
    <${Facts} rows=${[["All ended before", me.tokenCutoff && html`<${Time} at=${me.tokenCutoff} />`]]} /></${Card}>`;
}
