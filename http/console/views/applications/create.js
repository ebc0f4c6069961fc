// Ways to create an application that is not empty: from a template, and from a bundle.

import { organizationsToOwn } from "../../lib/access.js";
import { get, post } from "../../lib/api.js";
import { openForm } from "../../parts/form.js";
import { bundleField, sendBundle } from "../settings/bundle.js";

export async function createFromTemplate() {
  const [{ items: templates }, organizations] = await Promise.all([get("/applicationTemplates", { perPage: 100 }), organizationsToOwn()]);
  return openForm("Create an application from a template", {
    button: "Create",
    fields: [
      { name: "applicationTemplateId", label: "Template", type: "select", required: true, options: templates.map((each) => [each.id, `${each.name}: ${each.description}`]) },
      { name: "name", label: "Name", required: true },
      ...(organizations.length ? [{ name: "orgId", label: "Owner", type: "select", options: [["", "your account"], ...organizations.map((each) => [each.id, each.name])] }] : []),
    ],
    submit: (values) => post("/applications", values),
  });
}

export async function createFromBundle() {
  let file = null;
  const organizations = await organizationsToOwn();
  return openForm("Create an application from a bundle", {
    button: "Import", extra: bundleField((given) => (file = given)),
    fields: [{ name: "ownerId", label: "Owner", type: "select", options: [["", "your account"], ...organizations.map((each) => [each.id, each.name])] }],
    submit: (values) => sendBundle("/applications/import", file, values.ownerId ? { ...values, ownerType: "organization" } : {}),
  });
}
