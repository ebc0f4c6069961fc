// What others see of the user, and the e-mail address, which is also the name for logging in.

import { patch, post } from "../../lib/api.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Facts } from "../../parts/basics.js";
import { Form, openForm } from "../../parts/form.js";
import { note, noted } from "../../parts/notes.js";
import { stamps } from "../../parts/records.js";
import { credentials } from "./credentials.js";

const FIELDS = [
  ["firstName", "First name", "given-name"], ["lastName", "Last name", "family-name"], ["companyName", "Company", "organization"],
  ["title", "Title", "organization-title"], ["phoneNumber", "Telephone", "tel"], ["location", "Place", "off"], ["url", "Web address", "url"],
];

export function Profile({ me, reload }) {
  const changeEmail = async () => {
    const answer = await openForm("Change the e-mail address", {
      fields: [{ name: "email", label: "New e-mail address", type: "email", required: true, autocomplete: "email" }, ...credentials(me)],
      submit: ({ email, ...currentCredentials }) => patch("/me", { email, currentCredentials }, { proof: true }),
    });
    if (answer) { note("The e-mail address is changed. Log in with it from now on."); reload(); }
  };
  const verify = () => noted(post("/me/verify-email"), "The mail is sent. Its link is valid for a day.");
  const save = async (values) => {
    const answer = await patch("/me", values);
    note("The profile is saved.");
    reload();
    return answer;
  };
  const { summary = {} } = me;
  return html`<div class="columns">
    <${Card} title="Account"><${Facts} rows=${[
      ["E-mail address", html`${me.email} <button class="small" onClick=${changeEmail}>Change</button>`],
      ["Verified", me.emailVerified ? html`<${Badge} tone="good">verified</${Badge}>` : html`<span class="row"><${Badge} tone="warn">not verified</${Badge}> <button class="small" onClick=${verify}>Send the mail</button></span>`],
      ["Second factor", html`<a href=${link("/account", "security")}>${me.twoFactorAuthEnabled ? "enabled" : "not enabled"}</a>`],
      ["Applications", summary.appCount],
      ["Organizations", html`<a href=${link("/organizations")}>${summary.orgCount}</a>`],
      ["API tokens", html`<a href=${link("/account", "tokens")}>${summary.apiTokenCount}</a>`],
      ...stamps(me),
    ]} /></${Card}>
    <${Card} title="Profile"><${Form} initial=${me} changesOnly submit=${save}
      fields=${FIELDS.map(([name, label, autocomplete]) => ({ name, label, autocomplete, required: name === "firstName", blank: "" }))} /></${Card}>
  </div>`;
}
