// One run: what started it, its path in the picture, what it was given, its error, and its repetition.

import { get, path } from "../../lib/api.js";
import { duration } from "../../lib/format.js";
import { useData, useFrame, useStream } from "../../lib/hooks.js";
import { link, route } from "../../lib/router.js";
import { html, useMemo, useRef, useState } from "../../lib/ui.js";
import { Card, Facts, Loaded, Notice, Time } from "../../parts/basics.js";
import { Json } from "../../parts/json.js";
import { useDeviceNames } from "../../parts/choose.js";
import { note } from "../../parts/notes.js";
import { useVersionNames } from "./choice.js";
import { Graph } from "./graph.js";
import { PartPanel } from "./part.js";
import { replayRun } from "./replay.js";
import { Outcome } from "./runs.js";
import { marksOf, partsOf, typeText } from "./shape.js";
import { Debug, ErrorText, Ignored, Steps } from "./steps.js";

const ENDED_MAX = 500;

export function Run({ app, flow, run: id }) {
  const source = path("applications", app, "flows", flow);
  const data = useData((signal) => get(`${source}/runs/${encodeURIComponent(id)}`, {}, { signal }), [source, id]);
  const back = link("/applications", app, "workflows", flow, "runs");
  return html`<div><a href=${back}>All runs</a></div>
    <${Loaded} data=${data}>${(run) => html`<${Shown} key=${run.id} ...${{ app, flow, run, source }} />`}</${Loaded}>`;
}

function Shown({ app, flow, run, source }) {
  const [replayed, setReplayed] = useState(null);
  const ended = useRunsThatEnd(source);
  const devices = useDeviceNames(app, [run.deviceId]);
  const versions = useVersionNames(app, flow);
  const version = useData((signal) => get(`${source}/versions/${encodeURIComponent(run.flowVersionId || "develop")}`, {}, { signal }), [source, run.flowVersionId]);
  const here = (more) => link("/applications", app, "workflows", flow, "runs", { run: run.id, ...more });
  const replay = async () => {
    const done = await replayRun(app, flow, run, versions.names);
    if (done) setReplayed(done);
  };
  const dry = link("/applications", app, "workflows", flow, "try", { from: run.id });
  const actions = run.canReplay && html`<button data-write class="primary" onClick=${replay}>Replay</button><a data-write class="button" href=${dry}>Try without effects</a>`;
  return html`
    <${Card} title=${`Run of ${typeText(run.triggerType || "trigger")}`} actions=${actions}>
      <div class="stack">
        ${run.error && html`<${ErrorText} error=${run.error} href=${(key) => here({ node: key })} />`}
        ${replayed && html`<${Replayed} ...${{ app, flow, ended: ended.get(replayed.id), id: replayed.id }} />`}
        <${Facts} rows=${[
          ["Outcome", html`<${Outcome} outcome=${run.outcome} />`],
          ["Ended", html`<${Time} at=${run.time} /> (<${Time} at=${run.time} age />)`],
          ["Waited", run.queued && run.began ? duration(Date.parse(run.began) - Date.parse(run.queued)) : undefined],
          ["Took", run.wallTime === undefined ? undefined : duration(run.wallTime)],
          ["Version", html`<a href=${link("/applications", app, "workflows", flow, { version: run.flowVersion })}>${run.flowVersion}</a>`],
          ["Trigger", run.triggerType && html`${typeText(run.triggerType)} <span class="quiet break">${run.triggerKey === run.deviceId ? "" : run.triggerKey}</span>`],
          ["Device", run.deviceId && html`<a href=${link("/applications", app, "devices", run.deviceId)}>${devices.get(run.deviceId) || run.deviceId}</a>`],
          ["Dropped", run.dropped ? `${run.dropped} triggers, because the queue was full` : undefined],
          ["Replay of", run.replayOf && html`<a href=${link("/applications", app, "workflows", flow, "runs", { run: run.replayOf })}>${run.replayOf}</a>`],
          ["Id", html`<code>${run.id}</code>`],
        ]} />
        ${run.canReplay === false && html`<${Notice}>The trigger of this run is not kept, because it is too large, so the run cannot be replayed.</${Notice}>`}
      </div>
    </${Card}>
    ${version.error && html`<${Notice} tone="warn">The version of this run cannot be shown: ${version.error.message}</${Notice}>`}
    ${version.value && html`<${Passed} ...${{ run, version: version.value, here }} />`}
    <div class="columns">
      <${Steps} path=${run.path} definition=${version.value} error=${run.error} href=${(step) => here({ node: step.nodeId })} />
      <${Card} title="Payload at the start">
        ${run.payload ? html`<${Json} value=${run.payload} />` : html`<p class="quiet">It is not kept.</p>`}
        <p class="quiet">The payload after each step is not recorded. ${run.canReplay && html`<a href=${dry}>Try without effects</a> shows it.`}</p></${Card}>
    </div>
    <${Ignored} notes=${run.notes} href=${(key) => here({ node: key })} />
    <${Debug} messages=${run.debug} />`;
}

// The newest runs that ended while this is shown, by id. It begins before a replay, which may end before its answer comes.
function useRunsThatEnd(source) {
  const ended = useRef(new Map());
  const [, redraw] = useState(0);
  const draw = useFrame(() => redraw((before) => before + 1));
  const onEvent = (run) => {
    if (ended.current.size >= ENDED_MAX) ended.current.delete(ended.current.keys().next().value);
    ended.current.set(run.id, run);
    draw();
  };
  const onReset = () => get(source + "/runs").then(({ items }) => items.forEach(onEvent), (error) => note(error.message, "bad"));
  useStream(source + "/runStream", { onEvent, onReset });
  return ended.current;
}

// The picture of the version with the path, and the chosen part beside it.
function Passed({ run, version, here }) {
  const { query } = route.value;
  const href = (key) => here({ node: key, arrange: query.arrange });
  const parts = useMemo(() => partsOf(version), [version]);
  const marks = useMemo(() => marksOf(parts, run.path, run.error, (each) => each.type === run.triggerType && (each.key || "") === (run.triggerKey || "")), [parts, run]);
  const known = new Set(parts.map((part) => part.key));
  const gone = [...marks.visited.keys()].filter((key) => !known.has(key));
  return html`
    ${gone.length > 0 && html`<${Notice} tone="warn">The run visited nodes that are not in this version now: ${gone.join(", ")}. They are parts of a custom node, or the draft was changed since.</${Notice}>`}
    <div class=${query.node ? "flow-beside with-panel" : "flow-beside"}>
      <${Graph} definition=${version} arrange=${query.arrange} selected=${query.node} href=${href} marks=${marks} label="The path of the run." />
      ${query.node && html`<${PartPanel} definition=${version} selected=${query.node} href=${href} problems=${version.problems} />`}
    </div>`;
}

// What became of a run that was queued again.
function Replayed({ app, flow, ended, id }) {
  if (!ended) return html`<${Notice}>Queued again. The new run has not ended yet.</${Notice}>`;
  return html`<${Notice} tone=${ended.outcome === "completed" ? "good" : "warn"}>The replay has ended: <${Outcome} outcome=${ended.outcome} />
    ${" "}${ended.error ? ended.error.message : ""} <a href=${link("/applications", app, "workflows", flow, "runs", { run: id })}>Open the new run</a></${Notice}>`;
}
