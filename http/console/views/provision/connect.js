// How a device connects: programs to copy with its own access key, a QR code with the same, and whether it has reported.

import { html, useState } from "../../lib/ui.js";
import { Card, Notice, Snippet } from "../../parts/basics.js";
import { QrCode, qrModules } from "../account/qr_code.js";
import { FirstState } from "./first_state.js";
import { accessText, exampleState, snippets } from "./snippets.js";

const HERE_ONLY = /^(localhost|127\..*|\[::1\])$/;

// record: the device; access: {key, secret} of an access key for it alone.
export function Connect({ app, record, access }) {
  const given = { url: location.origin, app, device: record.id, ...access };
  return html`<${FirstState} key=${record.id} app=${app} record=${record} />
    <${Card} title=${`Connect ${record.name}`}><div class="stack">
      <${Notice} tone="warn"><b>The secret of its access key is in what follows. It is shown now and never again.</b> The key admits this device alone; a lost one is replaced by a new one.</${Notice}>
      ${HERE_ONLY.test(location.hostname) && html`<p class="quiet">These programs call <code>${location.origin}</code>, which only this machine reaches. Open the console at an address that devices reach, and they have that one.</p>`}
      <div class="connect"><div class="stack"><h3>By a program</h3><${Programs} access=${given} attributes=${record.attributes} /></div>
        <div class="stack"><h3>By a telephone or an installer</h3><${Code} access=${given} /></div></div>
    </div></${Card}>`;
}

// The programs, one at a time.
export function Programs({ access, attributes }) {
  const [chosen, setChosen] = useState("curl");
  const all = snippets(access, exampleState(attributes));
  const [, title, note, text] = all.find(([key]) => key === chosen);
  return html`<div class="row" role="group" aria-label="Programs">${all.map(([key, name]) => html`<button class="small" aria-pressed=${key === chosen} onClick=${() => setChosen(key)}>${name}</button>`)}</div>
    <p class="quiet">${note} It logs in as the device, and reports one state.</p>
    <${Snippet} text=${text} label=${`A state with ${title}`} />`;
}

function Code({ access }) {
  const text = accessText(access);
  if (!qrModules(text)) return html`<p class="quiet">The address of this server is too long for a QR code beside the key.</p>`;
  return html`<${QrCode} text=${text} label="The server, the id of the device, its key and its secret as a QR code" />
    <p class="quiet">JSON with the fields <code>server</code>, <code>deviceId</code>, <code>key</code> and <code>secret</code>. It is no address, so that no browser or proxy keeps the secret. Print it for who installs the device, and treat it as a password.</p>`;
}
