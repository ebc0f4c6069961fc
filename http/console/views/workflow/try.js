// Run a version with a payload of choice and without any effect: no command, no request, no change.

import { get, post } from "../../lib/api.js";
import { exactJson, parseExact } from "../../lib/exact.js";
import { useData } from "../../lib/hooks.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html, useId, useMemo, useState } from "../../lib/ui.js";
import { Card, Loaded, Notice, Problem, Time } from "../../parts/basics.js";
import { Json } from "../../parts/json.js";
import { getVersion, useVersionNames, VersionSelect } from "./choice.js";
import { Diff } from "./diff.js";
import { draftOf } from "./draft.js";
import { Graph } from "./graph.js";
import { definitionOf, marksOf, partsOf, triggerText, typeText } from "./shape.js";
import { Debug, ErrorText, Ignored, Steps } from "./steps.js";

// The address may name the run whose payload is taken (`from`), and the version; `draft` stands for a text that is not
// saved.
export function Try({ app, flow, source }) {
  const { query } = route.value;
  const draft = useMemo(() => query.draft && draftOf(flow), [query.draft, flow]);
  const given = useData((signal) => (query.from ? get(`${source}/runs/${encodeURIComponent(query.from)}`, {}, { signal, exact: true }) : Promise.resolve(null)), [source, query.from]);
  const asked = query.version || given.value?.flowVersion || "develop";
  const ready = !query.from || given.value;
  const version = useData((signal) => (ready ? getVersion(source, asked, { signal, exact: true }) : Promise.resolve()), [source, asked, Boolean(ready)]);
  if (draft) return html`<${Trial} key="draft" ...${{ app, flow, source, version: { triggers: [], nodes: [], ...draft, version: "" }, draft }} />`;
  return html`${query.draft && html`<${Notice}>There is no unsaved text. This is the draft as it was saved.</${Notice}>`}<${Loaded} data=${query.from ? given : version}>${() => html`<${Loaded} data=${version}>${(value) => html`
    <${Trial} key=${`${value.id} ${query.from || ""}`} ...${{ app, flow, source, version: value, run: given.value }} />`}</${Loaded}>`}</${Loaded}>`;
}

function Trial({ app, flow, source, version, run, draft }) {
  const versions = useVersionNames(app, flow);
  const id = useId();
  const [trigger, setTrigger] = useState(() => Math.max(0, run ? version.triggers.findIndex((each) => each.type === run.triggerType && (each.key || "") === (run.triggerKey || "")) : 0));
  const [texts, setTexts] = useState(() => startOf(version, run));
  const [result, setResult] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const set = (name) => (event) => setTexts((before) => ({ ...before, [name]: event.target.value }));
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const body = { ...tried(version, trigger, draft), data: read("data", texts.data), payload: read("payload", texts.payload), stubs: read("stubs", texts.stubs) };
      setResult(await post(source + "/test", body, { exact: true }));
      setQuery({ step: "" });
    } catch (failure) {
      setResult(null);
      setError(failure);
    }
    setBusy(false);
  };
  const area = (name, label, rows, hint) => html`<div class="field"><label for=${id + name}>${label}</label>
    <textarea id=${id + name} rows=${rows} spellcheck=${false} value=${texts[name]} onInput=${set(name)}></textarea><span class="hint">${hint}</span></div>`;
  return html`
    ${run && html`<${Notice}>The payload is that of the <a href=${link("/applications", app, "workflows", flow, "runs", { run: run.id })}>run of <${Time} at=${run.time} /></a>.</${Notice}>`}
    <${Card} title="Try without effects">
      <form class="stack" onSubmit=${submit}>
        <p class="quiet">Nothing is sent, stored or changed. ${draft ? html`This is the text that is <a href=${link("/applications", app, "workflows", flow, "edit")}>not saved</a>.` : "The draft is tried as it was saved last."}</p>
        <div class="row">${!draft && html`<${VersionSelect} names=${versions.names} value=${version.version} set=${(name) => setQuery({ version: name, step: "" })} />`}
          <label for=${id + "trigger"}>Trigger</label><select id=${id + "trigger"} value=${String(trigger)} onChange=${(event) => setTrigger(Number(event.target.value))}>
            ${version.triggers.map((each, at) => html`<option value=${String(at)} selected=${at === trigger}>${each.meta?.label || typeText(each.type)} ${triggerText(each)}</option>`)}</select></div>
        <div class="columns">
          ${area("data", "data of the payload", 8, "JSON: what the trigger gives, such as the reported attributes.")}
          ${area("payload", "Further fields of the payload", 8, "JSON object: put beside data, such as time or deviceName.")}
          ${area("stubs", "Stubs", 8, 'JSON object: what takes the place of nodes, such as {"ID": {"output": 1, "set": {"working.reply": {}}}}.')}
        </div>
        <${Problem} error=${error} />
        <div><button data-write class="primary" disabled=${busy || !version.triggers.length}>Run without effects</button>
          ${!version.triggers.length && html` <span class="quiet">This version has no trigger to begin with.</span>`}</div>
      </form>
    </${Card}>
    ${result && html`<${Result} ...${{ app, flow, version, result, trigger: version.triggers[trigger] }} />`}`;
}

// What the server is to run. It begins with the first trigger that has the name that is given; a trigger without a name
// of which it is the first is put before the others, since the server begins with the first one if none is named.
function tried(version, trigger, draft) {
  const { triggers } = version, chosen = triggers[trigger];
  const names = ({ key, meta, type }) => [key, meta?.id, meta?.uiId, type];
  const name = names(chosen).find((each) => each && triggers.findIndex((other) => names(other).includes(each)) === trigger);
  if (name) return { ...(draft ? { definition: draft } : { flowVersion: version.version }), trigger: name };
  return { definition: { ...definitionOf(version), triggers: [chosen, ...triggers.toSpliced(trigger, 1)] } };
}

// The data of a run, of a button that has some, or nothing.
function startOf(version, run) {
  const text = (value) => exactJson(value, 2);
  const { data = {}, ...more } = run?.payload || {};
  const own = version.triggers.find((each) => each.meta?.payload)?.meta.payload;
  return { data: run ? text(data) : own || "{}", payload: text(more), stubs: "{}" };
}

function read(name, text) {
  try {
    return parseExact(text.trim() || "{}");
  } catch (error) {
    throw new Error(`${name} is not JSON: ${error.message}.`);
  }
}

function Result({ app, flow, version, result, trigger }) {
  const { query } = route.value;
  const parts = useMemo(() => partsOf(version), [version]);
  const marks = useMemo(() => marksOf(parts, result.steps, result.error, (each) => each === trigger), [parts, result, trigger]);
  const here = (more) => link("/applications", app, "workflows", flow, "try", { ...query, ...more });
  const first = (key) => result.steps.findIndex((step) => step.nodeId === key);
  const newest = result.steps.findLastIndex((each) => each.payload !== undefined); // a step that failed has none
  const at = query.step === undefined ? newest : Number(query.step);
  const step = result.steps[at], before = result.steps[at - 1];
  const text = (value) => exactJson(value, 2);
  return html`
    ${result.error ? html`<${ErrorText} error=${result.error} />` : html`<${Notice} tone="good">The run completed.</${Notice}>`}
    ${result.problems.map((each) => html`<${Notice} tone="warn">${each.nodeLabel || each.nodeId}: ${each.message}</${Notice}>`)}
    <${Graph} definition=${version} arrange=${query.arrange} selected=${step?.nodeId} marks=${marks} label="The path of the dry run."
      href=${(key) => (first(key) >= 0 ? here({ step: first(key) }) : version.version ? link("/applications", app, "workflows", flow, { version: version.version, node: key }) : link("/applications", app, "workflows", flow, "edit", { node: key }))} />
    <div class="columns">
      <${Steps} path=${result.steps} definition=${version} error=${result.error} current=${at} href=${(each, index) => here({ step: index })} />
      <${Card} title=${step ? `Payload after step ${at + 1}` : "Payload"}>
        <div class="stack">
          ${step?.payload === undefined ? html`<p class="quiet">The payload of this step is not shown.</p>` : html`<${Json} value=${step.payload} />`}
          ${step?.payload !== undefined && before?.payload !== undefined && html`<details><summary>Changed by this step</summary><${Diff} before=${text(before.payload)} after=${text(step.payload)} label="Lines that the step changed" /></details>`}
        </div></${Card}>
    </div>
    <${Ignored} notes=${result.notes} />
    <${Debug} messages=${result.debug} />`;
}
