// The health of devices and applications: a mark, whose form says the same as its colour, and a word.

import { html } from "../lib/ui.js";
import { Mark } from "./icon.js";

// By the word of the API: the tone and what people read. `info` is the level of a reason that does not change the verdict.
export const HEALTH = {
  critical: ["bad", "Critical"],
  warning: ["warn", "Warning"],
  ok: ["good", "Well"],
  unknown: ["", "No data yet"],
  info: ["", "Note"],
  connected: ["good", "Connected"],
  reporting: ["good", "Reporting"],
  silent: ["bad", "Silent"],
  neverSeen: ["", "Never seen"],
};

// The mark and the word.
export function Health({ health }) {
  const [tone, word] = HEALTH[health] || HEALTH.unknown;
  return html`<span class="health ${tone}"><${Mark} tone=${tone} />${word}</span>`;
}
