// The life of a device in one word, whatever the protocol, with its last sign of life and how often it is expected.

import { duration } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { Time } from "../../parts/basics.js";
import { Health } from "../../parts/health.js";

const SOURCES = { device: "as it is set", history: "as its reports were", default: "until it has reported a few times" };

// life: of devices.getHealth.
export function Life({ life: { health, lastSeen, expectedIntervalSeconds, silentAfterSeconds, expectedFrom } }) {
  if (!lastSeen) return html`<span class="row"><${Health} health=${health} /><span class="quiet">nothing was heard of it yet</span></span>`;
  const expected = `Expected every ${duration(expectedIntervalSeconds * 1000)}, ${SOURCES[expectedFrom] || ""}; silent after ${duration(silentAfterSeconds * 1000)}.`;
  return html`<span class="row" title=${expected}><${Health} health=${health} /><span class="quiet">last heard <${Time} at=${lastSeen} age />,
    expected every ${duration(expectedIntervalSeconds * 1000)}</span></span>`;
}
