// What a rule would have done in the last day, before it is saved.

import { path, post } from "../../lib/api.js";
import { count, plural, valueText } from "../../lib/format.js";
import { link } from "../../lib/router.js";
import { html, useState } from "../../lib/ui.js";
import { Problem, Time } from "../../parts/basics.js";
import { bodyOf } from "./words.js";

const SHOWN = 5;

// read(): the values of the form. rule: the one that it changes, whose query of devices it does not show.
export function Trial({ app, read, rule }) {
  const [state, setState] = useState({});
  const look = async () => {
    setState({ busy: true });
    try {
      const { name, notify, ...body } = bodyOf(read(), rule);
      const given = Object.entries(body).filter(([, value]) => value !== null);
      const tried = { name: name || "a rule", ...Object.fromEntries(given), deviceQuery: rule?.deviceQuery };
      setState({ value: await post(`${path("applications", app, "alarm-rules")}/try`, tried) });
    } catch (error) {
      setState({ error });
    }
  };
  return html`<div class="trial stack"><div><button type="button" aria-disabled=${Boolean(state.busy)} onClick=${look}>What would it have done in the last day?</button></div>
    <${Problem} error=${state.error} />
    <div role="status">${state.value && html`<${Answer} app=${app} value=${state.value} />`}</div></div>`;
}

function Answer({ app, value }) {
  const { totalCount, items, deviceCount, stateCount, eventCount, isWhole } = value;
  const devices = new Set(items.map((each) => each.deviceId).filter(Boolean)).size;
  const on = devices ? ` on ${items.length < totalCount ? "at least " : ""}${plural(devices, "device")}` : "";
  const looked = eventCount ? plural(eventCount, "event") : `${plural(stateCount, "state")} of ${plural(deviceCount, "device")}`;
  return html`<p><b>${totalCount ? `${plural(totalCount, "alarm")}${on}` : "No alarm"}</b>
      <span class="quiet"> in ${looked}${isWhole ? "" : ", which are not all"}.</span></p>
    ${totalCount > 0 && html`<ul>${items.slice(0, SHOWN).map((each) => html`<li><${Time} at=${each.openedAt} />${" "}
      ${each.deviceId ? html`<a href=${link("/applications", app, "devices", each.deviceId)} target="_blank" rel="noopener">${each.deviceName}</a>` : "without a device"}${each.value === undefined ? "" : `: ${valueText(each.value)}`}
      <span class="quiet">${each.endedAt ? html` until <${Time} at=${each.endedAt} />` : " still open"}</span></li>`)}</ul>
      ${totalCount > SHOWN && html`<p class="quiet">and ${count(totalCount - SHOWN)} before.</p>`}`}`;
}
