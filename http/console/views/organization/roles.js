// Choosing a role, and other roles in single applications and dashboards.

import { get } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { html, useId, useState } from "../../lib/ui.js";
import { Problem } from "../../parts/basics.js";
import { useOpen } from "../../parts/dialog.js";
import { note } from "../../parts/notes.js";
import { article } from "../../parts/records.js";
import { RESOURCE_ROLES, ROLES } from "./words.js";

const LISTED_MAX = 1000;

// initial: {role, applicationRoles, dashboardRoles}; submit(values) gives a promise; `before`: more fields, which may
// use `given(name)`, the value of an input of the form.
export function RolesForm({ org, initial, before, button, submit, close }) {
  const [role, setRole] = useState(initial.role || "view");
  const [roles, setRoles] = useState({ applicationRoles: initial.applicationRoles || [], dashboardRoles: initial.dashboardRoles || [] });
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const open = useOpen();
  const send = async (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    setBusy(true);
    setError(null);
    try {
      const work = submit({ role, ...roles }, (name) => given.get(name)).then((answer) => answer ?? true);
      close.during(work);
      close(await work);
    } catch (failure) {
      if (!open()) note(failure.message, "bad");
      setError(failure);
      setBusy(false);
    }
  };
  const list = (field, source, what) => html`<${ResourceRoles} ...${{ org, source, what }} value=${roles[field]} set=${(value) => setRoles({ ...roles, [field]: value })} />`;
  return html`<form class="form" onSubmit=${send} noValidate>
    ${before}
    <div class="field"><label for=${id}>Role</label>
      <select id=${id} value=${role} onChange=${(event) => setRole(event.target.value)}>${ROLES.map(([value, text]) => html`<option value=${value} selected=${value === role}>${text}</option>`)}</select></div>
    ${list("applicationRoles", "/applications", "application")}
    ${list("dashboardRoles", "/dashboards", "dashboard")}
    <${Problem} error=${error} />
    <div class="buttons row"><button type="button" onClick=${() => close()}>Cancel</button><button class="primary" disabled=${busy}>${button}</button></div>
  </form>`;
}

// Roles in single applications or dashboards; they replace the role above there.
function ResourceRoles({ org, source, what, value, set }) {
  const data = useData((signal) => get(source, { orgId: org.id, perPage: LISTED_MAX, sortField: "name" }, { signal }), [source, org.id]);
  const id = useId();
  const all = data.value?.items || [];
  const name = (resource) => all.find((each) => each.id === resource)?.name || resource;
  const change = (resource, role) => set(value.map((each) => (each.resourceId === resource ? { ...each, role } : each)));
  const left = all.filter((each) => !value.some((given) => given.resourceId === each.id));
  return html`<fieldset class="group resource-roles"><legend>Roles in single ${what}s</legend>
    ${value.map((each) => html`<div class="row" key=${each.resourceId}>
      <span class="name">${name(each.resourceId)}</span>
      <select aria-label=${`Role in ${name(each.resourceId)}`} value=${each.role} onChange=${(event) => change(each.resourceId, event.target.value)}>
        ${RESOURCE_ROLES.map((role) => html`<option value=${role} selected=${role === each.role}>${role}</option>`)}</select>
      <button type="button" class="small" aria-label=${`Remove the role in ${name(each.resourceId)}`} onClick=${() => set(value.filter((given) => given !== each))}>Remove</button></div>`)}
    <${Problem} error=${data.error} retry=${data.reload} />
    ${left.length > 0 ? html`<label for=${id} class="hidden-label">Add a role in ${article(what)}</label>
        <select id=${id} value="" onChange=${(event) => event.target.value && set([...value, { resourceId: event.target.value, role: "view" }])}>
          <option value="" selected>Add one for ${article(what)}</option>
          ${left.map((each) => html`<option key=${each.id} value=${each.id}>${each.name}</option>`)}</select>`
      : data.value && all.length === 0 && html`<span class="quiet">The organization has no ${what}s.</span>`}
  </fieldset>`;
}
