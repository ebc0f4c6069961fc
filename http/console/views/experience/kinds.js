// The kinds of records of an experience: for each its columns, fields and facts, which experience.js shows.
// fields(document, around, change): of the form that creates or changes one; `around` has the application and its versions.
// linked(row): what a row of the list names, as ["groups/ID"]; the names are then in its `names`, by the same texts.

import { get, patch, path, serverTime } from "../../lib/api.js";
import { count } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Snippet, Tags, Time } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { RecordLinks } from "../../parts/choose.js";
import { openForm } from "../../parts/form.js";
import { note } from "../../parts/notes.js";
import { fieldsOf } from "../../parts/schema.js";
import { TextForm } from "../../parts/text.js";
import { Requests } from "./requests.js";
import { pageOf, replyFact, replyFields, replyInitial, replyText, takeReply } from "./replies.js";

export const DEVELOP = "develop";
const MEMBERS_MAX = 20;
const DAY_MS = 86_400_000;
const PEM = ".pem,.crt,.cer,.key,.txt";
const METHODS = ["get", "post", "put", "patch", "delete", "options"].map((each) => [each, each.toUpperCase()]);
const ACCESS = [["public", "everybody"], ["authenticated", "users who are logged in"], ["group", "users of its groups"], ["device", "users with access to a device"]];
const listOf = (around, kind) => path("applications", around.application.id, "experience", kind);
const groupsField = (around) => ({ label: "Groups", type: "records", source: listOf(around, "groups"), hint: undefined });
// The ids of a field with one record at most as the id that the API takes.
const withSingle = (values, name) => (Array.isArray(values[name]) ? { ...values, [name]: values[name][0] } : values);
const methodOf = (record) => record.method.toUpperCase();
const endpointText = (record) => `${methodOf(record)} ${record.route}`;
const accessText = (record) => ACCESS.find(([key]) => key === record.access)[1];
const versions = (around) => [...around.versions.map((each) => [each.version, each.version]), ["", "no version"]];
const versionField = (around) => ({ type: "select", options: versions(around), blank: null });

// Links to a path of the experience on the sites that serve this version. The first is for trying; the other has a host
// of its own, which a browser on the machine of the server finds.
function Open({ slug, at = "/", text }) {
  const local = ["localhost", "127.0.0.1"].includes(location.hostname);
  const host = `${location.protocol}//${slug}.localhost${location.port ? `:${location.port}` : ""}${at}`;
  return html`<a href=${local ? host : `/x/${slug}${at}`} target="_blank" rel="noopener">${text || (local ? host : `/x/${slug}${at}`)}</a>`;
}

function served(record, around) {
  if (record.method !== "get" || /\{[^}?*]+\}/.test(record.route)) return null;
  const at = record.route.replace(/\/\{[^}]+\}/g, "") || "/";
  const sites = around?.sites.filter((each) => (each.version ?? "") === DEVELOP) || [];
  return sites.length ? html`<span class="row">${sites.map((each) => html`<${Open} slug=${each.slug} at=${at} />`)}</span>` : "by a slug or a domain; create one to open it";
}

const endpoints = {
  title: "Endpoints", noun: "endpoint", versioned: true, search: "route", sortField: "order", params: { requestCountDuration: DAY_MS },
  lead: "An endpoint answers requests to a route: with a page, with a redirection, or with what a workflow replies.",
  example: { method: "get", route: "/hello", access: "public", staticReply: { type: "redirect", value: "/" } },
  name: endpointText,
  linked: (row) => (pageOf(row.staticReply) ? [`views/${pageOf(row.staticReply)}`] : []),
  columns: () => [
    { label: "Route", sort: "route", render: (row) => html`<code>${row.route}</code>` },
    { label: "Method", sort: "method", render: methodOf },
    { label: "Access", render: accessText },
    { label: "Reply", render: (row) => replyText(row.staticReply, row.names.get(`views/${pageOf(row.staticReply)}`)) || "a workflow" },
    { label: "Requests in 24 h", sort: "requestCount", number: true, render: (row) => count(row.requestCount) },
    { label: "Enabled", render: (row) => html`<${Badge} tone=${row.enabled ? "good" : ""}>${row.enabled ? "enabled" : "disabled"}</${Badge}>` },
  ],
  fields: (document, around, change) => [
    ...fieldsOf(document, change ? "EndpointPatch" : "EndpointPost", {
      only: ["method", "route", "enabled", "access", "experienceGroupIds", "deviceIdTemplate"], change,
      more: {
        method: { options: METHODS, value: "get", hint: undefined },
        access: { options: ACCESS, value: "public", hint: undefined },
        experienceGroupIds: { ...groupsField(around), show: (values) => values.access === "group" },
        deviceIdTemplate: { show: (values) => values.access === "device", placeholder: "{{request.params.deviceId}}" },
      },
    }),
    ...replyFields("staticReply", "Reply without a workflow", around.application.id),
    ...replyFields("unauthorizedReply", "Reply to those who may not call it", around.application.id),
    ...fieldsOf(document, "EndpointPost", { only: ["description", "endpointTags"], change }),
  ],
  initial: (record) => ({
    ...record, experienceGroupIds: record.experienceGroups.map((each) => each.id),
    ...replyInitial("staticReply", record), ...replyInitial("unauthorizedReply", record),
  }),
  toBody: (values, record) => takeReply("unauthorizedReply", takeReply("staticReply", values, record), record),
  facts: (record, app, around, version) => [
    ["Enabled", record.enabled ? "yes" : "no"], ["Access", accessText(record)],
    record.experienceGroups.length > 0 && ["Groups", html`<span class="row">${record.experienceGroups.map((each) => html`<a href=${link("/applications", app, "experience", "groups", each.id)}>${each.name}</a>`)}</span>`],
    record.deviceIdTemplate && ["Device", html`<code>${record.deviceIdTemplate}</code>`],
    ["Reply", replyFact(record.staticReply, app, version) || "that of a workflow"],
    ["Reply without access", replyFact(record.unauthorizedReply, app, version)],
    ["Served", served(record, around)], ["Description", record.description || null],
  ],
  more: ({ record, source, isFixed }) => html`${!isFixed && html`<${Requests} source=${source} endpoint=${record.id} />`}
    ${!record.staticReply && html`<${Card} title="Reply by a workflow">
    <p>Give a workflow of the class <code>experience</code> a trigger of the type <code>endpoint</code> with this key, and an Endpoint Reply node.</p>
    <${Snippet} text=${record.id} label="The key of the trigger" /></${Card}>`}`,
};

const views = {
  title: "Views", noun: "view", versioned: true, search: "name", types: [["page", "pages"], ["layout", "layouts"], ["component", "components"]],
  lead: "Views are templates in Handlebars: pages, the layouts around them, and components of both.",
  example: { name: "Hello", viewType: "page", body: "<h1>Hello {{experience.user.firstName}}</h1>" },
  name: (record) => record.name,
  columns: () => [
    { label: "Name", sort: "name", render: (row) => row.name },
    { label: "Type", render: (row) => row.viewType },
    { label: "Layout", render: (row) => row.layoutName || "" },
    { label: "Characters", number: true, render: (row) => count(row.body.length) },
    { label: "Changed", sort: "lastUpdated", render: (row) => html`<${Time} at=${row.lastUpdated} />` },
  ],
  fields: (document, around, change) => fieldsOf(document, change ? "ViewPatch" : "ViewPost", {
    only: ["name", "viewType", "layoutId", ...(change ? [] : ["body"]), "description", "headers", "viewTags"], change,
    more: {
      layoutId: { label: "Layout", type: "records", single: true, source: listOf(around, "views"), query: { viewType: "layout" }, hint: undefined, blank: null, show: (values) => !values.viewType || values.viewType === "page" },
      body: { rows: 12 },
      headers: { type: "map", blank: change ? {} : undefined, placeholder: "content-type=text/html", hint: "The type of the page, if it is not text/html" },
    },
  }),
  initial: (record) => ({ ...record, layoutId: record.layoutId ? [record.layoutId] : [] }),
  toBody: (values) => withSingle(values, "layoutId"),
  facts: (record) => [
    ["Type", record.viewType], ["Layout", record.layoutName || null], ["Description", record.description || null],
    Object.keys(record.headers).length > 0 && ["Headers", Object.entries(record.headers).map(([key, value]) => `${key}: ${value}`).join(", ")],
  ],
  more: ({ record, reload, source, isFixed }) => html`<${Card} title="Template">${isFixed
    ? html`<${Snippet} text=${record.body} label="The template" />`
    : html`<${TextForm} field=${{ name: "body", label: "Body" }} value=${record.body} read=${async () => (await get(source)).body}
        save=${async (values) => { await patch(source, values); note("The template is saved."); reload(); }} />`}</${Card}>`,
};

const users = {
  title: "Users", noun: "user", search: "email",
  lead: "People who log in to the experience. They have no access to this console.",
  example: { email: "ann@example.com", password: "a long password" },
  name: (record) => record.email,
  columns: () => [
    { label: "E-mail", sort: "email", render: (row) => row.email },
    { label: "Name", sort: "lastName", render: (row) => [row.firstName, row.lastName].filter(Boolean).join(" ") },
    { label: "Groups", render: (row) => row.experienceGroups.map((each) => each.name).join(", ") },
    { label: "Last login", sort: "lastLogin", render: (row) => html`<${Time} at=${row.lastLogin} age />` },
  ],
  fields: (document, around, change) => fieldsOf(document, change ? "ExperienceUserPatch" : "ExperienceUserPost", {
    only: ["email", "password", "firstName", "lastName", "experienceGroupIds", "userTags"], change,
    more: { email: { type: "email" }, experienceGroupIds: groupsField(around) },
  }),
  initial: (record) => ({ ...record, experienceGroupIds: record.experienceGroups.map((each) => each.id) }),
  facts: (record, app) => [
    ["Name", [record.firstName, record.lastName].filter(Boolean).join(" ") || null],
    ["Groups", record.experienceGroups.length === 0 ? "none" : html`<span class="row">${record.experienceGroups.map((each) => html`<a href=${link("/applications", app, "experience", "groups", each.id)}>${each.name}</a>`)}</span>`],
    ["Last login", html`<${Time} at=${record.lastLogin} age />`], ["Password changed", html`<${Time} at=${record.passwordLastUpdated} />`],
    record.tokenCutoff && ["Logins ended", html`<${Time} at=${record.tokenCutoff} />`],
    Object.keys(record.userTags).length > 0 && ["Tags", html`<${Tags} tags=${Object.entries(record.userTags).map(([key, value]) => ({ key, value }))} />`],
  ],
  actions: ({ record, reload, source }) => html`<button data-write onClick=${async () => {
    const end = async () => patch(source, { tokenCutoff: await serverTime() });
    if (await confirmed({ title: "End all logins?", text: html`<b>${record.email}</b> has to log in again everywhere.`, button: "End them", act: end })) reload();
  }}>End all logins</button>`,
};

// The first users of a group, and how many it has.
function Members({ app, group }) {
  const source = path("applications", app, "experience", "users");
  const all = group.experienceUserIds.length;
  const data = useData((signal) => get(source, { experienceGroupId: group.id, perPage: MEMBERS_MAX }, { signal }), [source, group]);
  const shown = data.value?.items || [];
  return html`<span class="row">${shown.map((each) => html`<a key=${each.id} href=${link("/applications", app, "experience", "users", each.id)}>${each.email}</a>`)}
    ${all > shown.length && (shown.length ? `and ${count(all - shown.length)} more` : count(all))}${all === 0 && "none"}</span>`;
}

const groups = {
  title: "Groups", noun: "group", search: "name",
  lead: "Groups decide which users may call which endpoints, and which devices they see.",
  example: { name: "Farmers" },
  name: (record) => record.name,
  linked: (row) => (row.parentId ? [`groups/${row.parentId}`] : []),
  columns: () => [
    { label: "Name", sort: "name", render: (row) => row.name },
    { label: "Above it", render: (row) => row.names.get(`groups/${row.parentId}`) || row.parentId || "" },
    { label: "Users", number: true, render: (row) => count(row.experienceUserIds.length) },
    { label: "Endpoints", number: true, render: (row) => count(row.experienceEndpointIds.length) },
    { label: "Devices", number: true, render: (row) => count(row.totalDeviceCount ?? row.directDeviceCount ?? row.deviceIds.length) },
  ],
  fields: (document, around, change) => fieldsOf(document, change ? "GroupPatch" : "GroupPost", {
    only: ["name", "description", "parentId", "experienceUserIds", "experienceEndpointIds", "deviceIds", "deviceTags", "deviceQueryJson", "groupTags"], change,
    more: {
      parentId: { label: "Group above it", hint: undefined, type: "records", single: true, source: listOf(around, "groups") },
      experienceUserIds: { label: "Users", type: "records", source: listOf(around, "users"), by: "email", hint: undefined },
      experienceEndpointIds: { label: "Endpoints", type: "records", source: listOf(around, "endpoints"), by: "route", text: endpointText, hint: undefined },
      deviceIds: { label: "Devices by name", type: "records", source: path("applications", around.application.id, "devices"), hint: undefined },
      deviceTags: { label: "Devices by tag" },
      deviceQueryJson: { label: "Device query" },
    },
  }),
  initial: (record) => ({ ...record, parentId: record.parentId ? [record.parentId] : [] }),
  toBody: (values) => withSingle(values, "parentId"),
  facts: (record, app) => [
    ["Above it", record.parentId && html`<${RecordLinks} source=${path("applications", app, "experience", "groups")} ids=${[record.parentId]} href=${(id) => link("/applications", app, "experience", "groups", id)} />`],
    ["Users", html`<${Members} app=${app} group=${record} />`],
    ["Endpoints", html`<${RecordLinks} source=${path("applications", app, "experience", "endpoints")} ids=${record.experienceEndpointIds} text=${endpointText} href=${(id) => link("/applications", app, "experience", "endpoints", id)} />`],
    record.totalDeviceCount !== undefined && ["Devices", `${count(record.directDeviceCount)} directly, ${count(record.totalDeviceCount)} with the groups below it`],
    record.deviceIds.length > 0 && ["Devices by id", html`<span class="row">${record.deviceIds.map((id) => html`<a href=${link("/applications", app, "devices", id)}><code>${id}</code></a>`)}</span>`],
    record.deviceTags.length > 0 && ["Devices by tag", html`<${Tags} tags=${record.deviceTags} />`],
    record.deviceQueryJson && ["Device query", html`<code class="break">${record.deviceQueryJson}</code>`],
    ["Description", record.description || null],
  ],
};

const domains = {
  title: "Domains", noun: "domain", search: "domainName",
  lead: "A domain of your own that shows the experience. Its name has to lead to this server.",
  example: { domainName: "farm.example.com" },
  name: (record) => record.domainName,
  columns: () => [
    { label: "Domain", sort: "domainName", render: (row) => row.domainName },
    { label: "Version", render: (row) => row.version || "none" },
    { label: "Certificate", render: (row) => (row.sslCert ? "its own" : "that of the server") },
  ],
  fields: (document, around, change) => fieldsOf(document, change ? "DomainPatch" : "DomainPost", {
    only: ["domainName", "version", "sslCert", "sslKey", "sslBundle"], change,
    more: { version: versionField(around), sslCert: { file: PEM }, sslKey: { file: PEM }, sslBundle: { file: PEM } },
  }),
  initial: (record) => ({ ...record, version: record.version || "" }),
  facts: (record) => [
    ["Version", record.version || "none"], ["Certificate", record.sslCert ? "its own" : "that of the server"],
    ["Open", html`<a href=${`https://${record.domainName}/`} target="_blank" rel="noopener">https://${record.domainName}/</a>`],
  ],
};

const slugs = {
  title: "Slugs", noun: "slug", search: "slug",
  lead: "A slug is the first part of a name of the site, such as farm of farm.localhost.",
  example: { slug: "farm" },
  name: (record) => record.slug,
  columns: () => [
    { label: "Slug", sort: "slug", render: (row) => row.slug },
    { label: "Version", render: (row) => row.version || "none" },
    { label: "Open", render: (row) => html`<${Open} slug=${row.slug} />` },
  ],
  fields: (document, around, change) => fieldsOf(document, change ? "SlugPatch" : "SlugPost", { only: ["slug", "version"], change, more: { version: versionField(around) } }),
  initial: (record) => ({ ...record, version: record.version || "" }),
  facts: (record) => [
    ["Version", record.version || "none"], ["By its host", html`<${Open} slug=${record.slug} />`],
    ["For trying", html`<a href=${`/x/${record.slug}/`} target="_blank" rel="noopener">/x/${record.slug}/</a>`],
  ],
};

const releases = {
  title: "Versions", noun: "version", search: "version", place: (row) => (row.version === DEVELOP ? DEVELOP : row.id),
  lead: "What you change belongs to develop. A version has copies of its endpoints and views, which never change.",
  example: { version: "v1" },
  name: (record) => record.version,
  columns: () => [
    { label: "Version", sort: "version", render: (row) => row.version },
    { label: "Served at", render: (row) => [...row.attachedDomains.map((each) => each.domainName), ...row.attachedSlugs.map((each) => each.slug)].join(", ") },
    { label: "Description", render: (row) => row.description || "" },
    { label: "Created", sort: "creationDate", render: (row) => html`<${Time} at=${row.creationDate} />` },
  ],
  fields: (document, around, change) => [
    ...fieldsOf(document, change ? "VersionPatch" : "VersionPost", {
      only: ["version", "description", "domainIds", "slugIds", "endpointDefaultCors", "allowedCorsOrigins", "responseHeaders"], change,
      more: {
        domainIds: { type: "records", source: listOf(around, "domains"), by: "domainName", label: "Domains", hint: undefined },
        slugIds: { type: "records", source: listOf(around, "slugs"), by: "slug", label: "Slugs", hint: undefined },
        endpointDefaultCors: change ? {} : { type: "select", options: [["", "as develop"], ["true", "yes"], ["false", "no"]] },
      },
    }),
    ...replyFields("notFoundReply", "Reply where there is no endpoint", around.application.id),
    ...replyFields("unauthorizedReply", "Reply to those without access", around.application.id),
  ],
  initial: (record) => ({ ...record, ...replyInitial("notFoundReply", record), ...replyInitial("unauthorizedReply", record) }),
  toBody: (values, record) => {
    const body = takeReply("unauthorizedReply", takeReply("notFoundReply", values, record), record);
    return typeof body.endpointDefaultCors === "string" ? { ...body, endpointDefaultCors: body.endpointDefaultCors === "true" } : body;
  },
  facts: (record, app, around, version) => [
    ["Domains", record.attachedDomains.map((each) => each.domainName).join(", ") || null],
    ["Slugs", record.attachedSlugs.length ? html`<span class="row">${record.attachedSlugs.map((each) => html`<${Open} slug=${each.slug} text=${each.slug} />`)}</span>` : null],
    ["Other origins", record.endpointDefaultCors ? record.allowedCorsOrigins.join(", ") || "all, without cookies" : "none"],
    ["Reply where there is no endpoint", replyFact(record.notFoundReply, app, version)],
    ["Reply without access", replyFact(record.unauthorizedReply, app, version)],
    ["Headers", Object.entries(record.responseHeaders).map(([key, value]) => `${key}: ${value}`).join(", ") || null],
    ["Globals", record.globals.map((each) => each.key).join(", ") || null],
    ["Description", record.description || null],
  ],
  actions: ({ record, reload, source, around }) => around && html`<button data-write onClick=${async () => {
    const others = around.versions.map((each) => each.version).filter((each) => each !== record.version);
    const done = await openForm(`Replace what ${record.version} has`, {
      button: "Replace", extra: html`<p>All endpoints and views of ${record.version} are replaced by those of the other version, for good.</p>`,
      fields: [{ name: "sourceVersionIdOrName", label: "By those of", type: "select", options: others, required: true }],
      submit: (values) => patch(source, values),
    });
    if (!done) return;
    note("The version was replaced.");
    reload();
  }} disabled=${around.versions.length < 2}>Replace by another version</button>`,
};

export const KINDS = { endpoints, views, users, groups, domains, slugs, versions: releases };
