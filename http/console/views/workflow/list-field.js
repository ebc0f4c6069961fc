// A list of a part: rows with fields, texts, or flags. Each can be changed as JSON instead, and is shown so if it is
// something else.

import { html, useId, useLayoutEffect, useRef, useState } from "../../lib/ui.js";
import { LiveField } from "./live-field.js";
import { fieldsOfRow } from "./settings.js";

// set(value, name): a step of the draft, with the steps of the same name; order(places, blank): as in `reordered`.
export function ListField({ field, value, set, order }) {
  const [asJson, setAsJson] = useState(!field.fitting);
  const isJson = asJson || !field.fitting;
  const Shown = field.kind === "flags" ? Flags : Rows;
  const turn = field.fitting && html`<button key="turn" type="button" class="small" aria-label=${`${field.label} as ${isJson ? "a list" : "JSON"}`} onClick=${() => setAsJson(!isJson)}>As ${isJson ? "a list" : "JSON"}</button>`;
  if (!isJson) return html`<${Shown} ...${{ field, value, set, order, turn }} />`;
  return html`<div class="flow-list"><${LiveField} field=${{ ...field, type: "json" }} value=${value} set=${(given) => set(given)} /><div class="row">${turn}</div></div>`;
}

// "Device tags" as "Device tag", "To addresses" as "To address".
const oneOf = (label) => label.replace(/sses$/, "ss").replace(/([^s])s$/, "$1");

function Rows({ field, value, set, order, turn }) {
  const id = useId();
  const root = useRef(null);
  const [, redraw] = useState(0);
  const rows = value || [], name = oneOf(field.label), word = name.charAt(0).toLowerCase() + name.slice(1);
  const count = useRef(0); // of the keys that were given
  const keys = useRef([]).current; // what a row keeps while others come and go
  while (keys.length < rows.length) keys.push(count.current++);
  keys.length = rows.length;
  const goal = useRef(null); // selectors of what gets the focus, the first of them that can
  useLayoutEffect(() => {
    const found = goal.current?.map((each) => root.current.querySelector(each)).find((each) => each && !each.disabled);
    goal.current = null;
    found?.focus();
  });
  const inRow = (key, what = "") => `[data-row="${key}"] ${what}`;
  const arrange = (places, ...focus) => {
    const given = places.map((at) => (at === null ? count.current++ : keys[at]));
    keys.splice(0, keys.length, ...given);
    goal.current = focus.map((each) => (typeof each === "function" ? each(given) : each));
    order(places, field.kind === "rows" ? {} : "");
    redraw((before) => before + 1); // of two rows that are alike, the order is no change of the draft
  };
  const places = rows.map((_, at) => at);
  const add = () => arrange([...places, null], (given) => inRow(given.at(-1), ":is(input, textarea, select)"));
  // The row that takes the place, and no field of it: there, Ctrl+Z is that of the field.
  const remove = (at) => arrange(places.filter((each) => each !== at), (given) => (given.length ? inRow(given[Math.min(at, given.length - 1)]) : "[data-add]"));
  const move = (at, by) => {
    const moved = [...places];
    [moved[at], moved[at + by]] = [at + by, at];
    const [act, back] = by < 0 ? ["up", "down"] : ["down", "up"];
    arrange(moved, inRow(keys[at], `[data-move="${act}"]`), inRow(keys[at], `[data-move="${back}"]`));
  };
  const change = (at, given) => rows.map((row, each) => (each === at ? given : row));
  // Of a row, without what is blank.
  const withCell = (row, cell, given) => {
    const { [cell]: _, ...others } = row;
    return given === undefined ? others : { ...row, [cell]: given };
  };
  const cells = (row, at) => {
    const label = (text) => html`<span class="hidden-label">${name} ${at + 1}${text && ": "}</span>${text}`;
    const own = `${field.name}[${at}]`;
    if (field.kind === "texts") return html`<${LiveField} field=${{ name: own, label: label(""), type: "text" }} value=${row} set=${(given) => set(change(at, given ?? ""), `${field.name} ${keys[at]}`)} />`;
    const fields = fieldsOfRow(field, row);
    return fields.map((each) => html`<${LiveField} key=${each.name} field=${{ ...each, name: `${own}.${each.name}`, label: label(fields.length > 1 ? each.label : "") }} value=${row[each.name]}
      set=${(given) => set(change(at, withCell(row, each.name, given)), `${field.name} ${keys[at]} ${each.name}`)} />`);
  };
  const button = (act, what, at) => html`<button type="button" class="small" data-move=${act} aria-label=${`Move ${word} ${at + 1} ${act}`} disabled=${act === "up" ? at === 0 : at === rows.length - 1} onClick=${() => move(at, what)}>${act === "up" ? "Up" : "Down"}</button>`;
  return html`<div class="field flow-list" role="group" aria-labelledby=${id} ref=${root}>
    <span class="label" id=${id}>${field.label}</span>
    ${value && !rows.length && html`<span class="hint">The list is empty.</span>`}
    ${!rows.length && field.needed && html`<span class="hint">It has to be set.</span>`}
    ${rows.length > 0 && html`<ol>${rows.map((row, at) => html`<li key=${keys[at]} data-row=${keys[at]} tabindex="-1" aria-label=${`${name} ${at + 1}`}>
      <div class="row"><span class="name" aria-hidden="true">${name} ${at + 1}</span>${rows.length > 1 && [button("up", -1, at), button("down", 1, at)]}
        <button type="button" class="small" aria-label=${`Remove ${word} ${at + 1}`} onClick=${() => remove(at)}>Remove</button></div>
      <div class="cells">${cells(row, at)}</div></li>`)}</ol>`}
    <div class="row"><button key="add" type="button" class="small" data-add aria-label=${`Add ${word}`} onClick=${add}>Add</button>${turn}</div>
  </div>`;
}

// A box to check for each option; if nothing is set, all are checked.
function Flags({ field, value, set, turn }) {
  const flags = value || field.options.map(() => true);
  const toggle = (at) => set(flags.map((each, place) => (place === at ? !each : each)), `${field.name} ${at}`);
  return html`<fieldset class="field choices"><legend>${field.label}</legend>
    <div class="choice-list">${field.options.map((option, at) => html`<label key=${option}><input type="checkbox" name=${field.name} value=${option} checked=${flags[at]} onChange=${() => toggle(at)} /> <span>${option}</span></label>`)}</div>
    <div class="row">${turn}</div></fieldset>`;
}
