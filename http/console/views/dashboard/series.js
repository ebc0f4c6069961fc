// The parts of the form of a block that are lists: its series, each an attribute of devices, and its thresholds.

import { path } from "../../lib/api.js";
import { html, useId } from "../../lib/ui.js";
import { RecordChoice } from "../../parts/choose.js";
import { Field } from "../../parts/form.js";

const AGGREGATIONS = [
  ["", "as they were reported"], ["MEAN", "the mean"], ["MIN", "the lowest"], ["MAX", "the highest"], ["LAST", "the last"], ["FIRST", "the first"],
  ["MEDIAN", "the median"], ["SUM", "the sum"], ["COUNT", "how many"], ["STD_DEV", "the standard deviation"],
];
// Told apart on light and on dark; the server draws with the same in reports.
const COLOURS = [["", "automatic"], ["#3b82c4", "blue"], ["#e07b39", "orange"], ["#4ba35d", "green"], ["#c4504f", "red"], ["#8b6bb8", "purple"], ["#7d8590", "grey"]];
export const LEVELS = [["#4ba35d", "green"], ["#d9962b", "amber"], ["#c4504f", "red"], ["#3b82c4", "blue"], ["#7d8590", "grey"]];
const THRESHOLDS_MAX = 10;

// The name of an attribute, with those that devices have to choose from.
export function AttributeField({ label, names, value, set, required }) {
  const id = useId();
  return html`<div class="field"><label for=${id}>${label}${required ? "" : html` <span class="quiet">(optional)</span>`}</label>
    <input id=${id} list=${id + "-names"} autocomplete="off" value=${value || ""} placeholder="Search by name" onInput=${(event) => set(event.target.value.trim() || undefined)} />
    <datalist id=${id + "-names"}>${names.map((each) => html`<option value=${each}></option>`)}</datalist></div>`;
}

export const DevicesField = ({ app, chosen, set }) => html`<${RecordChoice} chosen=${chosen || []} set=${(ids) => set(ids.length ? ids : undefined)}
  field=${{ label: "Devices", source: path("applications", app, "devices"), hint: chosen?.length ? undefined : "Without a choice: all devices that have the attribute." }} />`;

// One series. `raw`: it is never aggregated; `alone`: nothing is beside it, so it needs no colour of its own.
export function Series({ app, names, segment, set, raw, alone }) {
  const change = (name) => (value) => {
    const { [name]: _, ...rest } = segment;
    set(value === undefined || value === "" ? rest : { ...rest, [name]: value });
  };
  const { aggregation } = segment;
  return html`<${AttributeField} label="Attribute" required names=${names} value=${segment.attribute} set=${change("attribute")} />
    <${DevicesField} app=${app} chosen=${segment.deviceIds} set=${change("deviceIds")} />
    <div class="pair">
      ${!raw && typeof aggregation !== "object" && html`<${Field} quiet field=${{ name: "aggregation", label: "Values", type: "select", options: AGGREGATIONS }} text=${aggregation === "NONE" ? "" : aggregation || ""} set=${change("aggregation")} />`}
      <${Field} field=${{ name: "label", label: "Label" }} text=${segment.label || ""} set=${change("label")} />
      ${!alone && html`<${Field} quiet field=${{ name: "color", label: "Colour", type: "select", options: withOwn(COLOURS, segment.color) }} text=${segment.color || ""} set=${change("color")} />`}
    </div>`;
}

// Several series, in frames with their numbers.
export function SeriesList({ segments, set, max = 20, ...rest }) {
  return html`${segments.map((segment, at) => html`<fieldset class="group" key=${at}><legend>Series ${at + 1}</legend>
      <${Series} ...${rest} segment=${segment} set=${(changed) => set(segments.with(at, changed))} />
      ${segments.length > 1 && html`<div><button type="button" class="small" onClick=${() => set(segments.toSpliced(at, 1))}>Remove series ${at + 1}</button></div>`}</fieldset>`)}
    ${segments.length < max && html`<div><button type="button" class="small" onClick=${() => set([...segments, {}])}>Add a series</button></div>`}`;
}

// From which value on a number has which colour, and which word that says the same.
export function Thresholds({ thresholds = [], set }) {
  const store = (list) => set(list.length ? list : undefined);
  const change = (at, name, value) => store(thresholds.with(at, { ...thresholds[at], [name]: value }));
  const add = () => {
    const last = thresholds.at(-1)?.value;
    const first = { color: LEVELS[0][0], label: "OK" };
    store([...thresholds, ...(thresholds.length ? [] : [first]), { value: last === undefined ? 80 : last + 10, color: LEVELS[Math.min(2, Math.max(1, thresholds.length))][0], label: thresholds.length > 1 ? "Critical" : "High" }]);
  };
  return html`<fieldset class="group"><legend>Thresholds</legend>
    ${thresholds.map((each, at) => html`<div class="threshold" key=${at} role="group" aria-label=${`Threshold ${at + 1}`}>
      ${"value" in each ? html`<label>from <input inputmode="decimal" aria-label="From the value" value=${String(each.value)} onChange=${(event) => Number.isFinite(Number(event.target.value)) && event.target.value.trim() && change(at, "value", Number(event.target.value))} /></label>` : html`<span>below</span>`}
      <select aria-label="Colour" onChange=${(event) => change(at, "color", event.target.value)}>${withOwn(LEVELS, each.color).map(([value, text]) => html`<option value=${value} selected=${value === each.color}>${text}</option>`)}</select>
      <input aria-label="Word" value=${each.label || ""} onInput=${(event) => change(at, "label", event.target.value)} />
      <button type="button" class="small" aria-label=${`Remove threshold ${at + 1}`} onClick=${() => store(thresholds.toSpliced(at, 1))}>Remove</button></div>`)}
    ${!thresholds.length && html`<p class="quiet">A colour and a word for values from a number on, such as "High" from 80.</p>`}
    ${thresholds.length < THRESHOLDS_MAX && html`<div><button type="button" class="small" onClick=${add}>Add a threshold</button></div>`}
  </fieldset>`;
}

// The options with the value that the block has, if it is another one.
const withOwn = (options, own) => (!own || options.some(([value]) => value === own) ? options : [...options, [own, own]]);
