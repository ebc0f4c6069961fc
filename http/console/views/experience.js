// The experience of an application: what it shows to people. A tab for each kind of record; kinds.js describes them.

import { del, get, patch, path } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { link, route, setQuery } from "../lib/router.js";
import { html, useState } from "../lib/ui.js";
import { Card, Facts, Loaded, Problem, Snippet, Tabs } from "../parts/basics.js";
import { confirmed, openDialog } from "../parts/dialog.js";
import { openForm } from "../parts/form.js";
import { note } from "../parts/notes.js";
import { RecordList, RecordPage } from "../parts/records.js";
import { useDocument } from "../parts/schema.js";
import { DEVELOP, KINDS } from "./experience/kinds.js";

const LIST_MAX = 500;

// The application with its versions, and the sites that serve the experience.
function useAround(app) {
  const base = path("applications", app, "experience");
  return useData(async (signal) => {
    const all = async (name) => (await get(`${base}/${name}`, { perPage: LIST_MAX }, { signal })).items;
    const [application, slugs, versions] = await Promise.all([
      get(path("applications", app), { summaryInclude: "deviceCount" }, { signal }), all("slugs"), all("versions"),
    ]);
    const own = application.endpointSlug ? [{ slug: application.endpointSlug, version: DEVELOP }] : [];
    return { application, versions, sites: [...own, ...slugs] };
  }, [app]);
}

// A page of a list, with the names of what its rows name.
async function rowsOf(base, tab, { params, linked }, asked, signal) {
  const list = await get(`${base}/${tab}`, { ...asked, ...params }, { signal });
  if (!linked) return list;
  const places = [...new Set(list.items.flatMap(linked))];
  const found = await Promise.all(places.map((place) => get(`${base}/${place}`, { version: asked.version }, { signal }).catch(() => null)));
  const names = new Map(places.map((place, at) => [place, found[at]?.name]));
  return { ...list, items: list.items.map((row) => ({ ...row, names })) };
}

export function Experience({ app, tab = "endpoints" }) {
  const document = useDocument();
  const around = useAround(app);
  const [made, setMade] = useState(0);
  const kind = KINDS[tab];
  if (!kind) return html`<${Problem} error=${{ message: `There is no tab ${tab}.` }} />`;
  const base = path("applications", app, "experience");
  const { query } = route.value;
  const version = kind.versioned ? query.version || "" : "";
  const changed = () => {
    setMade(made + 1);
    around.reload();
  };
  const names = around.value?.versions.map((each) => each.version) || [DEVELOP];
  const filters = html`
    ${kind.versioned && html`<${Choice} name="version" label="Version" value=${version} options=${names.map((name) => [name === DEVELOP ? "" : name, name])} />`}
    ${kind.types && html`<${Choice} name="type" label="Type" value=${query.type || ""} options=${[["", "all"], ...kind.types]} />`}`;
  const more = { filters, params: { version, viewType: query.type } };
  if (kind.params || kind.linked) more.source = (asked, signal) => rowsOf(base, tab, kind, asked, signal);
  return html`<${RecordList} title="Experience" noun=${kind.noun} many=${kind.many} lead=${kind.lead}
    source=${`${base}/${tab}`} search=${kind.search} sortField=${kind.sortField}
    above=${html`<${Problem} error=${around.error} retry=${around.reload} /><${Tabs} label="Parts of the experience" current=${tab} items=${Object.entries(KINDS).map(([key, each]) => [key, each.title, link("/applications", app, "experience", key)])} />`}
    columns=${kind.columns()}
    fields=${version ? undefined : document && around.value ? kind.fields(document, around.value, false) : null}
    toBody=${kind.toBody} example=${kind.example}
    href=${(row) => link("/applications", app, "experience", tab, kind.place?.(row) || row.id, { version })}
    actions=${html`<button data-write onClick=${() => bootstrap(base, changed)}>Create a first experience</button>
      <button class="danger" onClick=${() => removeAll(app, base, changed)}>Delete the experience</button>`}
    again=${made} more=${more} />`;
}

function Choice({ name, label, value, options }) {
  return html`<label class="row">${label} <select value=${value} onChange=${(event) => setQuery({ [name]: event.target.value, page: "" })}>
    ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}</select></label>`;
}

async function bootstrap(base, changed) {
  const made = await openForm("Create a first experience", {
    button: "Create",
    extra: html`<p class="quiet">Creates pages with a layout, endpoints, and the workflow that logs users in.</p>`,
    fields: [
      { name: "slug", label: "Slug", hint: "The first part of the name of the site, such as farm. Small letters, digits and hyphens" },
      { name: "createUsers", label: "Create a user", type: "checkbox", value: true },
      { name: "createGroups", label: "Create a group, with the user in it", type: "checkbox", value: true },
      { name: "replaceExisting", label: "Replace records that have the same names", type: "checkbox" },
    ],
    submit: (values) => patch(`${base}/bootstrap`, values),
  });
  if (!made) return;
  if (made.password) {
    await openDialog("The first user", (close) => html`<div class="stack"><p>The password is shown now and never again.</p>
      <${Facts} rows=${[["E-mail", made.email]]} /><${Snippet} text=${made.password} label="The password" />
      <div class="buttons"><button class="primary" onClick=${() => close(true)}>I have copied it</button></div></div>`);
  } else {
    note("The experience was created.");
  }
  changed();
}

async function removeAll(app, base, changed) {
  const parts = [
    ["keepEndpoints", "Keep the endpoints"], ["keepViews", "Keep the views, and the settings of develop"], ["keepUsers", "Keep the users"],
    ["keepGroups", "Keep the groups"], ["keepSlugs", "Keep the slugs"], ["keepDomains", "Keep the domains"],
    ["removeVersions", "Delete the named versions, too"], ["removeWorkflows", "Delete the workflows of the class experience, too"],
  ];
  const chosen = await openForm("Delete the experience", {
    button: "Go on", fields: parts.map(([name, label]) => ({ name, label, type: "checkbox" })), submit: async (values) => values,
  });
  if (!chosen) return;
  const application = await get(path("applications", app)).catch((error) => note(error.message, "bad"));
  if (!application) return;
  const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
  const done = await confirmed({
    title: "Delete the experience?", text: "Everything of it that is not kept is deleted for good.", typed: application.name,
    act: () => del(query ? `${base}?${query}` : base),
  });
  if (done) changed();
}

export function ExperienceRecord({ app, tab, record }) {
  const document = useDocument();
  const around = useAround(app);
  const kind = KINDS[tab];
  if (!kind) return html`<${Problem} error=${{ message: `There is no tab ${tab}.` }} />`;
  const { version } = route.value.query;
  const source = path("applications", app, "experience", tab, record);
  const home = link("/applications", app, "experience", tab, { version });
  const trail = [["Experience", link("/applications", app, "experience")], [kind.title, home]];
  const isFixed = Boolean(version);
  const fields = isFixed ? undefined : document && around.value ? kind.fields(document, around.value, true) : null;
  return html`<${RecordPage} key=${version} noun=${kind.noun} source=${version ? `${source}?version=${encodeURIComponent(version)}` : source}
    trail=${trail} title=${kind.name} home=${isFixed || record === DEVELOP ? undefined : home}
    fields=${fields} initial=${kind.initial} toBody=${kind.toBody}
    actions=${(shown, reload) => kind.actions?.({ record: shown, reload, source, around: around.value })}
    facts=${(shown) => [isFixed && ["Version", version], ...kind.facts(shown, app, around.value, version)].filter(Boolean)}
  >${(shown, reload) => html`<${Problem} error=${around.error} retry=${around.reload} />${kind.more?.({ record: shown, reload, source, isFixed, around: around.value })}
    ${kind.versioned && html`<${Linked} app=${app} source=${`${source}/linkedResources`} version=${version} />`}`}</${RecordPage}>`;
}

// What a page or an endpoint is linked with.
function Linked({ app, source, version }) {
  const data = useData((signal) => get(source, { version }, { signal }), [source, version]);
  return html`<${Card} title="Linked with"><${Loaded} data=${data}>${({ experienceViews, experienceEndpoints, flows, flowVersions }) => {
    const items = [
      ...experienceViews.items.map((each) => [each.viewType, each.name, link("/applications", app, "experience", "views", each.id, { version })]),
      ...experienceEndpoints.items.map((each) => ["endpoint", `${each.method.toUpperCase()} ${each.route}`, link("/applications", app, "experience", "endpoints", each.id, { version })]),
      ...flows.items.map((each) => ["workflow", each.name, link("/applications", app, "workflows", each.id)]),
      ...flowVersions.items.map((each) => ["version of a workflow", each.version, link("/applications", app, "workflows", each.flowId)]),
    ];
    if (!items.length) return html`<p class="quiet">Nothing is linked with it.</p>`;
    return html`<ul class="plain">${items.map(([kind, name, address]) => html`<li><a href=${address}>${name}</a> <span class="quiet">${kind}</span></li>`)}</ul>`;
  }}</${Loaded}></${Card}>`;
}
