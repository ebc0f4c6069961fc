// The form that sends a command: one with a field for each part of the payload, or any name with any JSON.

import { html, useState } from "../../lib/ui.js";
import { Card } from "../../parts/basics.js";
import { Form } from "../../parts/form.js";
import { WHOLE } from "./command_shapes.js";

const OTHER = ""; // no command has an empty name
const TTL = { name: " ttl", label: "Time to live in seconds", type: "number", hint: "It waits so long for a device that is not connected. Empty: until it is acknowledged." };
const ANY = [
  { name: "name", label: "Name", required: true, placeholder: "switch" },
  { name: "payload", label: "Payload", type: "json", rows: 3, placeholder: '{"on": true}', hint: "Any JSON." },
  TTL,
];

// shapes: of commandShapes. send(body) makes the call.
export function CommandForm({ shapes, send }) {
  // Chosen once, so that no form takes the place of another one while somebody types.
  const [chosen, setChosen] = useState(shapes[0]?.name ?? OTHER);
  const shape = shapes.find((each) => each.name === chosen);
  const choice = shapes.length > 0 && html`<div class="row apart" role="group" aria-label="Command">
    ${shapes.map((each) => html`<button key=${each.name} type="button" class="break" aria-pressed=${each.name === chosen} onClick=${() => setChosen(each.name)}>${each.name}</button>`)}
    <button type="button" class="plain" aria-pressed=${!shape} onClick=${() => setChosen(OTHER)}>Another command</button></div>`;
  return html`<${Card} title="Send a command" data-write>${choice}
    ${shape ? html`<${Form} key=${chosen} fields=${[...fieldsOf(shape), TTL]} initial=${initialOf(shape)} button=${`Send ${shape.name}`}
        submit=${({ [TTL.name]: ttlSeconds, ...values }) => send({ name: shape.name, payload: payloadOf(shape, values), ttlSeconds })} />`
      : html`<${Form} key=${OTHER} fields=${ANY} button="Send" submit=${({ [TTL.name]: ttlSeconds, ...body }) => send({ ...body, ttlSeconds })} />`}
  </${Card}>`;
}

function fieldsOf({ fields }) {
  return fields.map(({ key, type }) => ({
    name: key, label: key === WHOLE ? "Payload" : key,
    ...(type === "boolean" ? { type: "select", options: [["true", "true (on)"], ["false", "false (off)"]] } : { type, ...(type === "json" && { rows: 2 }) }),
  }));
}

function initialOf({ last, fields }) {
  const values = fields[0]?.key === WHOLE ? { [WHOLE]: last } : (last ?? {});
  return Object.fromEntries(fields.filter(({ key }) => values[key] !== undefined)
    .map(({ key, type }) => [key, type === "boolean" ? String(values[key]) : values[key]]));
}

// What the fields say; a field that is empty is left out.
function payloadOf({ fields }, values) {
  const given = fields.filter(({ key }) => values[key] !== undefined)
    .map(({ key, type }) => [key, type === "boolean" ? values[key] === "true" : values[key]]);
  if (!given.length) return undefined;
  return given[0][0] === WHOLE ? given[0][1] : Object.fromEntries(given);
}
