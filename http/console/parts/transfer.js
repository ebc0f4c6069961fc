// Give applications and dashboards of the user, or of an organization, to another owner.

import { get, path, patch } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { session } from "../lib/session.js";
import { html } from "../lib/ui.js";
import { openForm } from "./form.js";
import { note } from "./notes.js";

const LISTED_MAX = 1000;

// `org`: the organization that gives; the user gives without it. `application`: give this one, whoever owns it, instead of
// a choice. True if something was given.
export async function openTransfer({ org, application }) {
  const owner = application?.ownerId ?? org?.id ?? session.value.userId;
  const ofUser = application ? application.ownerType === "user" : !org;
  const list = async (source) => (application ? [] : (await get(`${source}?orgId=${org?.id ?? ""}&perPage=${LISTED_MAX}&sortField=name`)).items);
  let applications, dashboards, organizations;
  try {
    [applications, dashboards, organizations] = await Promise.all([list("/applications"), list("/dashboards"), get("/orgs", { perPage: LISTED_MAX })]);
  } catch (error) {
    note(error.message, "bad");
    return false;
  }
  // The dashboards of an application go with it.
  const owned = (items) => items.filter((each) => each.ownerId === owner && !(each.dashboardId && each.applicationId)).map((each) => [each.id, each.name]);
  const others = organizations.items.filter((each) => each.id !== owner).map((each) => [each.id, each.name]);
  const to = [...others, ...(ofUser && owner === session.value.userId ? [] : [[session.value.userId, "yourself"]]), ["user", "another user"]];
  const answer = await openForm("Transfer to another owner", {
    fields: [
      ...(application ? [] : [
        { name: "applicationIds", label: "Applications", type: "choices", options: owned(applications) },
        { name: "dashboardIds", label: "Dashboards", type: "choices", options: owned(dashboards) },
      ]),
      { name: "destination", label: "New owner", type: "select", options: to },
      { name: "user", label: "Id of the user", required: true, hint: "Users see their id in their account.", show: ({ destination }) => destination === "user" },
    ],
    button: "Transfer",
    extra: html`<p class="quiet">Access keys and API tokens of an application go with it. All of it happens at once. You can use it afterwards only if your role at the new owner allows it.</p>`,
    submit: ({ destination, user, ...given }) => {
      const chosen = application ? { applicationIds: [application.id] } : given;
      return patch(ofUser ? "/me/transferResources" : path("orgs", owner, "transferResources"), {
        ...chosen, strict: true,
        destinationType: others.some(([id]) => id === destination) ? "organization" : "user",
        destinationId: destination === "user" ? user.trim() : destination,
      }).then(() => chosen);
    },
  });
  if (!answer) return false;
  const given = [[answer.applicationIds, "application"], [answer.dashboardIds, "dashboard"]].filter(([ids]) => ids?.length).map(([ids, noun]) => plural(ids.length, noun));
  note(`Transferred: ${given.join(", ")}.`);
  return true;
}
