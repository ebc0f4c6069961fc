// The life of a device in one word, whatever the protocol, with its last sign of life and how often it is expected.

import { duration } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { Time } from "../../parts/basics.js";
import { Health } from "../../parts/health.js";

const SOURCES = { device: "as it is set", history: "as its reports were", default: "until it has reported a few times" };

// life: of devices.getHealth.
export function Life({ life: { health, lastSeen, expectedIntervalSeconds, silentAfterSeconds, expectedFrom } }) {
  if (!lastSeen) return html`<span class="row"><${Health} health=${health} /><span class="quiet">nothing was heard of it yet</span></span>`;
  const every = duration(Math.max(1, Math.round(expectedIntervalSeconds)) * 1000);
  const why = `Expected every ${every}, ${SOURCES[expectedFrom] || ""}; silent after ${duration(silentAfterSeconds * 1000)}.`;
  // What is heard of shows its own times below.
  return html`<span class="row" title=${why}><${Health} health=${health} /><span class="quiet">${health === "silent" && html`last heard <${Time} at=${lastSeen} age />, `}expected every ${every}</span></span>`;
}
