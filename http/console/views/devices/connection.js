// Whether a device is connected, and since when.

import { html } from "../../lib/ui.js";
import { Badge, Time } from "../../parts/basics.js";

export function Connection({ info }) {
  if (info?.connected === 1) return html`<span class="nowrap"><${Badge} tone="good">connected</${Badge}> <${Time} at=${info.time} age /></span>`;
  if (info?.connected === 0) return html`<span class="nowrap"><${Badge} tone="warn">disconnected</${Badge}> <${Time} at=${info.time} age /></span>`;
  return html`<span class="quiet nowrap">never connected</span>`;
}
