// The scopes and the expiry of API tokens, of an application and of a user.

import { html } from "../lib/ui.js";
import { Badge, now, Time } from "./basics.js";

// What can be chosen for a token, for a field "choices": families [[scope, meaning], ...], then resources and single
// operations of the API document that a token with all scopes of `family` reaches.
export function scopeChoices(document, family, families) {
  const resources = new Map(), operations = [];
  for (const methods of Object.values(document.paths)) {
    for (const operation of Object.values(methods)) {
      const scopes = operation["x-scopes"] || [];
      if (!scopes.includes(family)) continue;
      for (const scope of scopes.filter((each) => !each.startsWith("all."))) {
        if (scope.endsWith(".*")) resources.set(scope, `all operations of ${scope.slice(0, -2)}`);
        else operations.push([scope, operation.summary]);
      }
    }
  }
  const shown = ([scope, text]) => [scope, html`<code>${scope}</code> <span class="quiet">${text}</span>`];
  const sorted = [...resources, ...operations].sort(([one], [other]) => (one < other ? -1 : 1));
  return [...families, ...sorted].map(shown);
}

// The first scopes of a token, and how many more there are.
export const Scopes = ({ scopes }) => html`<span class="row">${scopes.slice(0, 4).map((each) => html`<code>${each}</code>`)}
  ${scopes.length > 4 && html`<span class="quiet" title=${scopes.slice(4).join(", ")}>and ${scopes.length - 4} more</span>`}</span>`;

export function Expiry({ at }) {
  if (!at) return "never";
  const over = new Date(at).getTime() < now.value;
  return html`<${Time} at=${at} />${over && html` <${Badge} tone="bad">expired</${Badge}>`}`;
}
