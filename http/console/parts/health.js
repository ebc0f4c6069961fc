// The health of devices and applications: a mark, whose form says the same as its colour, and a word.

import { html } from "../lib/ui.js";

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

const SHAPES = {
  good: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm-1.2 10.2L3.7 8.1l1.2-1.2 1.9 1.9 4.3-4.3 1.2 1.2Z",
  warn: "M8 1.3 15.4 14.5H.6ZM7.1 6v4.4h1.8V6Zm0 5.4v1.7h1.8v-1.7Z",
  bad: "M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1Zm2 3v5h1.8V4Zm0 6.2V12h1.8v-1.8Z",
  "": "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 1.7a5.3 5.3 0 1 1 0 10.6A5.3 5.3 0 0 1 8 2.7Z",
};

// The mark alone, for what has a word beside it.
export const Mark = ({ tone = "" }) => html`<svg class="mark ${tone}" viewBox="0 0 16 16" aria-hidden="true"><path d=${SHAPES[tone]} fill-rule="evenodd" fill="currentColor" /></svg>`;

// The mark and the word.
export function Health({ health }) {
  const [tone, word] = HEALTH[health] || HEALTH.unknown;
  return html`<span class="health ${tone}"><${Mark} tone=${tone} />${word}</span>`;
}
