// The tab that connects a device which is there already: with a new access key for it alone.

import { offered } from "../../lib/access.js";
import { path, post } from "../../lib/api.js";
import { link } from "../../lib/router.js";
import { html, useState } from "../../lib/ui.js";
import { Card, Problem } from "../../parts/basics.js";
import { Connect } from "../provision/connect.js";

export function ConnectTab({ app, record }) {
  const [access, setAccess] = useState(null);
  const [error, setError] = useState(null);
  const create = () => post(path("applications", app, "keys"), { name: record.name, deviceIds: [record.id] }).then(setAccess, setError);
  if (access) return html`<${Connect} key=${record.id} app=${app} record=${record} access=${{ key: access.key, secret: access.secret }} />`;
  return html`<${Card} title="Connect this device"><div class="stack">
      <p>A device logs in with its id, an access key and the secret of the key. Make a key that admits this device alone, and get programs that report with it, as they stand.</p>
      <${Problem} error=${error} />
      ${offered("keys") === "read" && html`<p>Your role does not allow access keys. Somebody with another role can make one here.</p>`}
      <div class="row">${offered("keys") !== "read" && html`<button class="primary" data-create onClick=${create}>Make an access key</button>`}
        <a href=${link("/applications", app, "keys")}>The access keys that there are</a></div></div></${Card}>`;
}
