// Add devices: one, or many from a recipe, each with an access key of its own; then a program to copy, and what arrives.

import { offered } from "../lib/access.js";
import { get, path } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { go, link } from "../lib/router.js";
import { html, useState } from "../lib/ui.js";
import { Card, Loaded, Page } from "../parts/basics.js";
import { Form } from "../parts/form.js";
import { openJob } from "../parts/job.js";
import { note } from "../parts/notes.js";
import { deviceFields } from "./device/fields.js";
import { Connect } from "./provision/connect.js";
import { createDevice, createFromRecipe, KEYS_MAX } from "./provision/create.js";
import { Made } from "./provision/made.js";

const WITHOUT_KEY = ["peripheral", "system"]; // they do not log in: a gateway reports for one, other devices for the other
const RECIPES_MAX = 100;
const LEAD = "Name it, copy a program that reports as this device, and see its first state arrive.";

export function AddDevices({ app }) {
  const recipes = useData((signal) => get(path("applications", app, "device-recipes"), { perPage: RECIPES_MAX, sortField: "name" }, { signal }), [app]);
  const [made, setMade] = useState(null); // {record, access}, or {rows, recipe}
  const trail = [["Devices", link("/applications", app, "devices")]];
  return html`<${Page} title="Add devices" lead=${LEAD} trail=${trail}>
    ${!made && html`<${Loaded} data=${recipes}>${({ items }) => html`<${What} ...${{ app, setMade }} recipes=${items} />`}</${Loaded}>`}
    ${made?.record && html`<${Connect} key=${made.record.id} app=${app} record=${made.record} access=${made.access} />`}
    ${made?.rows && html`<${Made} app=${app} rows=${made.rows} recipe=${made.recipe} />`}
    ${made && html`<div><button onClick=${() => setMade(null)}>Add more</button></div>`}
  </${Page}>`;
}

function What({ app, recipes, setMade }) {
  const [many, setMany] = useState(false);
  const choices = recipes.map((each) => [each.id, each.name]);
  const withKeys = offered("keys") !== "read";
  const recipeOf = (id) => recipes.find((each) => each.id === id);
  const one = async ({ recipe, ...values }) => {
    if (!recipe) {
      const made = await createDevice(app, values, { withKey: !WITHOUT_KEY.includes(values.deviceClass) });
      if (made.error) note(`${made.record.name} is created, without an access key: ${made.error.message}`, "bad");
      return made.access ? setMade(made) : go(link("/applications", app, "devices", made.record.id));
    }
    const { rows } = await createFromRecipe(app, recipe, { pattern: values.name, count: 1, tags: values.tags, withKeys });
    const [{ deviceId, accessKey, accessSecret }] = rows;
    if (!withKeys) return keyless(`${values.name} is created`, link("/applications", app, "devices", deviceId));
    const record = await get(path("applications", app, "devices", deviceId));
    return setMade({ record, access: { key: accessKey, secret: accessSecret } });
  };
  const several = async ({ recipe, ...values }) => {
    const answer = await createFromRecipe(app, recipe, { ...values, withKeys });
    if (answer.jobId) return openJob("Creation of devices", app, answer.jobId);
    if (!withKeys) {
      const made = answer.rows.filter((each) => each.deviceId).length, refused = answer.rows.find((each) => each.error);
      return keyless(`${plural(made, "device")} created${refused ? `, ${answer.rows.length - made} refused (${refused.error})` : ""}`, link("/applications", app, "devices", { sort: "creationDate", direction: "desc" }));
    }
    return setMade({ rows: answer.rows, recipe: recipeOf(recipe) });
  };
  const own = Object.fromEntries(deviceFields().map((each) => [each.name, each]));
  const tags = { ...own.tags, rows: 2 };
  const withoutRecipe = (field) => ({ ...field, show: (values) => !values.recipe && (!field.show || field.show(values)) });
  const oneFields = [
    { name: "name", label: "Name", required: true, placeholder: "pump-1" },
    choices.length > 0 && { name: "recipe", label: "Recipe", type: "select", options: [["", "none: with the attributes below"], ...choices] },
    withoutRecipe({ ...own.attributes, label: "What it reports", rows: 3, required: true }),
    tags,
    ...["deviceClass", "gatewayId", "parentId", "description"].map((name) => withoutRecipe(own[name])),
  ].filter(Boolean);
  const manyFields = [
    { name: "recipe", label: "Recipe", type: "select", options: choices },
    { name: "pattern", label: "Names", required: true, value: "pump-##", hint: "# is the number, ## has two digits or more." },
    { name: "count", label: "How many", type: "number", required: true, value: "10", hint: withKeys ? `Up to ${KEYS_MAX} get an access key each; more of them, at most 10,000, are created by a job, without keys.` : "At most 10,000." },
    { name: "first", label: "First number", type: "number", required: true, value: "1" },
    { ...tags, hint: "One key=value a line, the same for all." },
  ];
  return html`<${Card} data-write title="What is added">
    <div class="row apart" role="group" aria-label="How many"><button aria-pressed=${!many} onClick=${() => setMany(false)}>One device</button>
      <button aria-pressed=${many} onClick=${() => setMany(true)}>Many from a recipe</button></div>
    ${many && !choices.length ? html`<p>There is no recipe yet. <a href=${link("/applications", app, "recipes")}>Create one</a>: it has the attributes, the tags and the class of its devices.</p>`
      : many ? html`<${Form} key="many" fields=${manyFields} button="Create devices" submit=${several} />`
      : html`<${Form} key="one" fields=${oneFields} button="Create the device" submit=${one} />`}
    ${many && html`<p class="quiet apart">Devices with different names, tags or gateways: <a href=${link("/applications", app, "recipes")}>a recipe takes a CSV</a> with a line for each.</p>`}
  </${Card}>`;
}

// Tell that there are devices but no keys for them, and show the devices.
function keyless(done, place) {
  note(`${done}, without access keys: your role does not allow them.`);
  go(place);
}
