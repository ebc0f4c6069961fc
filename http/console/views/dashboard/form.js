// The form of a block with a preview, which asks for the same data, and draws them in the same way, as the dashboard.

import { get, path } from "../../lib/api.js";
import { exactJson } from "../../lib/exact.js";
import { duration } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { html, useEffect, useState } from "../../lib/ui.js";
import { Problem } from "../../parts/basics.js";
import { RecordChoice } from "../../parts/choose.js";
import { openDialog, useOpen } from "../../parts/dialog.js";
import { Field, openForm, toText, toValue } from "../../parts/form.js";
import { JsonEditor } from "../../parts/json.js";
import { Block } from "./block.js";
import { blockOf, KINDS, kindOf, withValue } from "./kinds.js";
import { AttributeField, DevicesField, Series, SeriesList, Thresholds } from "./series.js";

const TYPING_MS = 350;
const CHOICES = 100;
const PREVIEW_PX = 460;
const TITLE = { name: "title", label: "Title" };

// Ask for a new block. preview(block) gives a function that reads what it would show. Undefined if it is dismissed.
export async function addBlock(given, preview) {
  const app = given || (await chooseApplication());
  if (!app) return undefined;
  const names = await attributesOf(app);
  const first = { ...blockOf(KINDS[0]), ...(given ? {} : { applicationId: app }) };
  return openDialog("Add a block", (close) => html`<${BlockForm} ...${{ app, first, names, preview, close }} button="Add" />`);
}

// Ask for what a block shall be.
export async function editBlock(given, block, preview) {
  const app = block.applicationId || given;
  const names = app ? await attributesOf(app) : [];
  return openDialog("Edit this block", (close) => html`<${BlockForm} ...${{ app, first: block, names, preview, close }} button="Apply" />`);
}

const attributesOf = async (app) => (await get(path("applications", app, "devices", "attributeNames"))).attributeNames;

// A dashboard of a user may show any application that the user reaches.
async function chooseApplication() {
  const { items } = await get("/applications", { perPage: CHOICES, sortField: "name" });
  if (!items.length) throw new Error("There is no application yet. Create one first, since a block shows something of an application.");
  const options = items.map((each) => [each.id, each.name]);
  return openForm("Of which application?", { fields: [{ name: "app", label: "Application", type: "select", options }], button: "Next", submit: async ({ app }) => app });
}

function BlockForm({ app, first, names, preview, close, button }) {
  const [block, setBlock] = useState(first);
  const [asJson, setAsJson] = useState(!kindOf(first) || !app);
  const [error, setError] = useState(null);
  const [texts, setTexts] = useState({});
  const open = useOpen();
  const kind = kindOf(block);
  const set = (name, value) => setBlock((before) => withValue(before, name, value));
  const submit = async (event) => {
    event.preventDefault();
    setError(null);
    try {
      for (const field of [TITLE, ...kind.fields]) if (field.name in texts) read(field, texts[field.name]);
      await preview(block)(AbortSignal.timeout(30_000));
      if (open()) close(block);
    } catch (failure) {
      setError(failure);
    }
  };
  const choose = (name) => {
    const { width, height, ...rest } = block;
    const next = KINDS.find((each) => each.kind === name);
    setTexts({});
    setBlock(blockOf(next, first === block || button === "Add" ? rest : block));
  };
  const typed = (field) => (text) => {
    setTexts((before) => ({ ...before, [field.name]: text }));
    try {
      set(field.name, read(field, text));
    } catch {
      // It is not a value yet. Applying it says why.
    }
  };
  if (asJson) {
    const take = async (changed) => (kindOf(changed) && app ? (setBlock(changed), setTexts({}), setAsJson(false)) : close(changed));
    return html`<div class="block-form"><div class="stack">
        <${JsonEditor} value=${block} save=${take} button=${kind && app ? "Take into the form" : button} rows=${20} label="The block as JSON" />
        <div class="buttons"><button onClick=${() => close()}>Cancel</button></div></div>
      <${Preview} block=${block} preview=${preview} /></div>`;
  }
  const { config = {} } = block;
  const fields = kind.fields.filter((field) => !field.show || field.show(block));
  return html`<div class="block-form"><form class="form" onSubmit=${submit} noValidate>
      <${Field} quiet field=${{ name: "kind", label: "What it shows", type: "select", options: KINDS.map((each) => [each.kind, each.label]) }} text=${kind.kind} set=${choose} />
      <${Field} field=${TITLE} text=${block.title || ""} set=${(text) => set("title", text || undefined)} />
      ${kind.single && html`<${Series} alone app=${app} names=${names} segment=${config.segment || {}} set=${(segment) => set("config.segment", segment)} />`}
      ${kind.many && html`<${SeriesList} app=${app} names=${names} raw=${kind.raw} segments=${config.segments || []} set=${(segments) => set("config.segments", segments)} />`}
      ${kind.devices && html`<${DevicesField} app=${app} chosen=${config.deviceIds} set=${(ids) => set("config.deviceIds", ids)} />`}
      <div class="pair">${fields.map((field) => html`<${BlockField} key=${kind.kind + field.name} ...${{ app, names, field, block }} text=${texts[field.name]} typed=${typed(field)} set=${(value) => set(field.name, value)} />`)}</div>
      ${kind.thresholds && html`<${Thresholds} thresholds=${config.thresholds} set=${(list) => set("config.thresholds", list)} />`}
      <${Problem} error=${error} />
      <div class="buttons row"><button type="button" onClick=${() => setAsJson(true)}>Edit as JSON</button>
        <button type="button" onClick=${() => close()}>Cancel</button><button class="primary">${button}</button></div>
    </form>
    <${Preview} block=${block} preview=${preview} /></div>`;
}

// A field of a kind; those of attributes and tables search by name.
function BlockField({ app, names, field, block, text, typed, set }) {
  const value = field.name.split(".").reduce((inner, name) => inner?.[name], block);
  if (field.type === "attribute") return html`<${AttributeField} required=${!field.optional} label=${field.label} names=${names} value=${value} set=${set} />`;
  if (field.type === "attributes") return html`<${Field} quiet field=${{ ...field, type: "choices", options: [...new Set([...names, ...(value || [])])] }} text=${value || []} set=${(list) => set(list.length ? list : undefined)} />`;
  if (field.type === "table") {
    return html`<${RecordChoice} field=${{ ...field, single: true, source: path("applications", app, "data-tables") }} chosen=${value ? [value] : []} set=${(ids) => set(ids[0])} />`;
  }
  const shown = text ?? (field.type === "select" ? String(value ?? "") : toText(field, block));
  const own = field.type === "select" && !field.options.some(([each]) => each === shown);
  const options = own ? [...field.options, [shown, Number(shown) ? `last ${duration(Number(shown))}` : shown]] : field.options;
  return html`<${Field} quiet=${field.type === "select"} field=${own ? { ...field, options } : field} text=${shown} set=${typed} />`;
}

// The value of a field of a block. Throws an error with a sentence if it is none.
function read(field, text) {
  if (field.type === "select") return text === "" ? undefined : field.number && Number(text) ? Number(text) : text;
  return toValue(field, text);
}

// What the block would show, a moment after the last change. It keeps what it showed while it is read.
function Preview({ block, preview }) {
  const text = exactJson(block);
  const [asked, setAsked] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const incomplete = incompleteOf(block);
  const data = useData(async (signal) => {
    if (incomplete) return null;
    const answer = await preview(block)(signal);
    return { block, shown: answer.blocks[0] };
  }, [asked]);
  const rows = Math.min(5, Math.max(3, block.height));
  return html`<div class="block-preview"><p class="quiet">Preview</p>
    ${incomplete ? html`<p class="quiet" role="status">${incomplete}</p>` : data.error && html`<${Problem} error=${data.error} />`}
    ${!incomplete && data.value?.block.blockType === block.blockType && html`<${Block} block=${data.value.block} data=${data.value.shown} rows=${rows} px=${PREVIEW_PX} place=${{ height: `${rows * 6 - 1}rem` }} />`}
  </div>`;
}

// What a block lacks to show anything; null if it has all.
function incompleteOf({ blockType, config = {} }) {
  const series = { gauge: [config.segment || {}], graph: config.segments, bar: config.segments, pie: config.segments }[blockType];
  if (series?.some((each) => !each.attribute)) return "Choose an attribute; what it shows comes here.";
  if (blockType === "map" && !config.attribute && !config.locationTagKey) return "Choose the attribute that has the place.";
  if (blockType === "data-table" && !config.dataTableId) return "Choose a data table.";
  return null;
}
