// The level and the state of an event, as words with a colour.

import { link } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Badge } from "../../parts/basics.js";
import { Mark } from "../../parts/icon.js";

const LEVEL_TONES = { critical: "bad", error: "bad", warning: "warn", info: "accent" };
const STATE_TONES = { new: "accent", acknowledged: "warn", resolved: "good" };

export const levelTone = (level) => LEVEL_TONES[level];
export const LevelBadge = ({ level }) => html`<${Badge} tone=${LEVEL_TONES[level]}><${Mark} tone=${LEVEL_TONES[level]} />${level}</${Badge}>`;
export const StateBadge = ({ state }) => html`<${Badge} tone=${STATE_TONES[state]}>${state}</${Badge}>`;

// The device of an event, as a link; an event may have none, and its device may be deleted.
export function DeviceLink({ app, event }) {
  if (!event.deviceId) return html`<span class="quiet">none</span>`;
  if (!event.deviceName) return html`<code>${event.deviceId}</code> <span class="quiet">(deleted)</span>`;
  return html`<a href=${link("/applications", app, "devices", event.deviceId)}>${event.deviceName}</a>`;
}

// Who did something with an event.
export const source = ({ sourceName, sourceType, sourceId }) => `${sourceName || sourceId} (${SOURCES[sourceType] || sourceType})`;

const SOURCES = { flow: "workflow", apiToken: "API token", experienceUser: "experience user" };
