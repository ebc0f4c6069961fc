// The uploads of an application, with progress, and what is asked about them.

import { bytes } from "../../lib/format.js";
import { html, useEffect, useRef } from "../../lib/ui.js";
import { Badge, Card, Problem } from "../../parts/basics.js";
import { forgetDone, leaveOut, replaceExisting, uploads } from "./upload.js";
import { fileLink, joined } from "./trees.js";

const STATES = { waiting: ["", "waiting"], sending: ["accent", "sending"], done: ["good", "stored"], exists: ["warn", "exists already"], failed: ["bad", "not stored"] };

// `ended()` is called when an upload has ended, so that a list can be read again. `unfinished`: only those that have
// not ended are shown.
export function Uploads({ app, ended, unfinished }) {
  const ours = uploads.value.filter((each) => each.app === app);
  const done = ours.filter((each) => each.state === "done").length;
  const shown = unfinished ? ours.filter((each) => each.state !== "done") : ours;
  const before = useRef(done);
  useEffect(() => {
    if (done > before.current) ended();
    before.current = done;
  }, [done]);
  if (!shown.length) return null;
  return html`<${Card} title="Uploads" actions=${done > 0 && !unfinished && html`<button class="small" onClick=${forgetDone}>Clear what is stored</button>`}>
    <ul class="uploads">${shown.map((each) => html`<li key=${each.id}>
      <div class="row"><span class="break">${joined(each.directory, each.file.name)}</span> <span class="quiet">${bytes(each.file.size)}</span>
        <${Badge} tone=${STATES[each.state][0]}>${STATES[each.state][1]}</${Badge}>
        ${each.state === "exists" && html`<button data-write class="small danger" onClick=${() => replaceExisting(each)}>Replace its content</button> <a href=${fileLink(app, each.tree, each.found)}>Show it</a>`}
        ${each.state !== "done" && html`<button class="small" onClick=${() => leaveOut(each)}>${each.state === "sending" ? "Stop" : "Leave out"}<span class="hidden-label"> ${each.file.name}</span></button>`}</div>
      ${each.state === "sending" && html`<progress aria-label=${`Upload of ${each.file.name}`} max=${Math.max(1, each.file.size)} value=${each.sent}></progress>`}
      <${Problem} error=${each.error} /></li>`)}</ul>
  </${Card}>`;
}
