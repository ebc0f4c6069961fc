// The account of the user: the profile, the login, API tokens, and the end of the account.

import { get } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { link } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Loaded, Page, Tabs } from "../parts/basics.js";
import { Deletion } from "./account/deletion.js";
import { Profile } from "./account/profile.js";
import { Security } from "./account/security.js";
import { Tokens } from "./account/tokens.js";

const TABS = [["profile", "Profile", Profile], ["security", "Login", Security], ["tokens", "API tokens", Tokens], ["delete", "Delete", Deletion]];

export function Account({ tab = "profile" }) {
  const data = useData((signal) => get("/me", { summaryInclude: "appCount,orgCount,apiTokenCount" }, { signal }), []);
  const Tab = TABS.find(([key]) => key === tab)?.[2] || Profile;
  return html`<${Page} title="Your account" lead=${data.value?.email} of=${data}>
    <${Tabs} label="Account" current=${tab} items=${TABS.map(([key, text]) => [key, text, link("/account", key)])} />
    <${Loaded} data=${data}>${(me) => html`<${Tab} me=${me} reload=${data.reload} />`}</${Loaded}>
  </${Page}>`;
}
