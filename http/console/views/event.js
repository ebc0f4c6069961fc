// One event: what happened, and its history. It follows the stream, so that two people see what the other one does.

import { del, get, patch, path } from "../lib/api.js";
import { useData, useStream } from "../lib/hooks.js";
import { go, link } from "../lib/router.js";
import { html, useEffect, useState } from "../lib/ui.js";
import { Card, Facts, Live, Loaded, Notice, Page, Problem, Time } from "../parts/basics.js";
import { confirmed } from "../parts/dialog.js";
import { openForm } from "../parts/form.js";
import { Json } from "../parts/json.js";
import { stamps } from "../parts/records.js";
import { DeviceLink, LevelBadge, source, StateBadge } from "./events/badges.js";
import { LEVELS } from "./events/choice.js";

const KEPT_MAX = 100;

export function Event({ app, event: id }) {
  const target = path("applications", app, "events", id);
  const home = link("/applications", app, "events");
  const [gone, setGone] = useState(false);
  const data = useData((signal) => get(target, {}, { signal, exact: true }), [target]);
  const stream = useStream(path("applications", app, "eventStream"), {
    onEvent: ({ eventId, change }) => eventId === id && (change === "deleted" ? setGone(true) : data.reload()),
    onReset: () => data.reload(),
  });
  const live = stream.state === "live";
  // Something may have happened between the load of the event and the start of the stream.
  useEffect(() => { if (live) data.reload(); }, [live]);
  const event = data.value;
  const change = async () => {
    const answer = await openForm("Change this event", {
      fields: [
        { name: "subject", label: "Subject", required: true },
        { name: "level", label: "Level", type: "select", options: LEVELS },
        { name: "deviceId", label: "Device", hint: "The id of a device of this application; empty for none.", blank: null },
        { name: "eventTags", label: "Tags", type: "map", hint: "One key=value on each line.", blank: {} },
      ],
      initial: event, changesOnly: true, submit: (values) => patch(target, values),
    });
    if (answer) data.reload();
  };
  const remove = async () => {
    const done = await confirmed({ title: "Delete this event?", text: html`<b>${event.subject}</b> and its history are deleted for good.`, act: () => del(target) });
    if (done) go(home);
  };
  const actions = html`<${Live} stream=${stream} />
    ${event && !gone && html`<button data-write onClick=${change}>Change</button><button class="danger" onClick=${remove}>Delete</button>`}`;
  return html`<${Page} title=${event ? event.subject : "Event"} trail=${[["Events", home]]} actions=${actions} of=${data}>
    ${gone && html`<${Notice} tone="warn">Somebody has deleted this event.</${Notice}>`}
    <${Loaded} data=${data}>${(value) => html`
      <div class="columns">
        <${Card} title="About"><${Facts} rows=${facts(app, value)} /></${Card}>
        <${Card} title="Respond"><${Response} target=${target} event=${value} reload=${data.reload} /></${Card}>
      </div>
      ${value.data !== undefined && value.data !== null && html`<${Card} title="Data"><${Json} value=${value.data} /></${Card}>`}
      <${Card} title="History"><${History} app=${app} event=${value} /></${Card}>`}</${Loaded}>
  </${Page}>`;
}

const facts = (app, event) => [
  ["Level", html`<${LevelBadge} level=${event.level} />`],
  ["State", html`<${StateBadge} state=${event.state} />`],
  ["Device", html`<${DeviceLink} app=${app} event=${event} />`],
  ["Message", event.message && html`<span class="message">${event.message}</span>`],
  ["Tags", Object.keys(event.eventTags).length ? html`<span class="row">${Object.entries(event.eventTags).map(([key, value]) => html`<span class="tag">${key}=${value}</span>`)}</span>` : null],
  ["Created by", source(event)],
  ...stamps(event),
];

// A comment, with or without a new state.
function Response({ target, event, reload }) {
  const [comment, setComment] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const send = async (state) => {
    setBusy(true);
    setError(null);
    try {
      await patch(target, { ...(state ? { state } : {}), ...(comment.trim() ? { comment: comment.trim() } : {}) });
      setComment("");
      reload();
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const button = (state, text, primary) => html`<button data-write class=${primary ? "primary" : ""} disabled=${busy} onClick=${() => send(state)}>${text}</button>`;
  return html`<div class="stack">
    <div class="field" data-write><label for="comment">Comment <span class="quiet">(optional)</span></label>
      <textarea id="comment" rows="4" value=${comment} onInput=${(change) => setComment(change.target.value)}></textarea></div>
    <${Problem} error=${error} />
    <div class="row">
      ${event.state === "new" && button("acknowledged", "Acknowledge", true)}
      ${event.state !== "resolved" && button("resolved", "Resolve", event.state === "acknowledged")}
      ${event.state === "resolved" && button("new", "Open again")}
      <button data-write disabled=${busy || !comment.trim()} onClick=${() => send("")}>Only comment</button>
    </div></div>`;
}

// The newest update first. The server keeps the last hundred.
function History({ app, event }) {
  const { updates } = event;
  return html`<ol class="history">
    ${[...updates].reverse().map((update) => html`<li key=${update.creationDate + update.sourceId}>
      <p class="quiet"><${Time} at=${update.creationDate} /> by ${source(update)}</p>
      ${changesOf(app, update).map(([name, text]) => html`<p>${name}: ${text}</p>`)}
      ${update.comment && html`<p class="comment">${update.comment}</p>`}
      ${update.data !== undefined && update.data !== null && html`<${Json} value=${update.data} />`}
    </li>`)}
    ${updates.length >= KEPT_MAX && html`<li class="quiet">Older updates are not kept.</li>`}
    <li><p class="quiet"><${Time} at=${event.creationDate} /> by ${source(event)}</p><p>Created</p></li>
  </ol>`;
}

function changesOf(app, update) {
  const from = (old, now) => html`${old ?? "none"} → ${now ?? "none"}`;
  const rows = [];
  if (update.stateChange) rows.push(["State", html`<${StateBadge} state=${update.stateChange.old} /> → <${StateBadge} state=${update.stateChange.new} />`]);
  if (update.levelChange) rows.push(["Level", html`<${LevelBadge} level=${update.levelChange.old} /> → <${LevelBadge} level=${update.levelChange.new} />`]);
  if (update.subjectChange) rows.push(["Subject", from(update.subjectChange.old, update.subjectChange.new)]);
  const device = update.deviceIdChange;
  if (device) rows.push(["Device", from(device.oldDeviceName || device.old, device.newDeviceName || device.new)]);
  for (const [key, tag] of Object.entries(update.tagsChange || {})) rows.push([`Tag ${key}`, from(tag.old, tag.new)]);
  return rows;
}
