// Every view of the console: its address, its section of the navigation, and its file, which is loaded when it is first
// opened. The ":names" of an address are the properties of the view.

const APP = "/applications/:app";

// `open`: the view needs no login.
const view = (path, section, file, name, more) => ({
  path, section, file, ...more, load: () => import(`./views/${file}.js`).then((loaded) => loaded[name]),
});

export const ROUTES = [
  view("/", "applications", "applications", "Start"),
  view("/applications", "applications", "applications", "Applications"),
  view(APP, "overview", "overview", "Overview"),
  view(`${APP}/devices`, "devices", "devices", "Devices"),
  view(`${APP}/devices/add`, "devices", "provision", "AddDevices"),
  view(`${APP}/devices/:device`, "devices", "device", "Device"),
  view(`${APP}/devices/:device/:tab`, "devices", "device", "Device"),
  view(`${APP}/recipes`, "recipes", "recipes", "Recipes"),
  view(`${APP}/recipes/:recipe`, "recipes", "recipes", "Recipe"),
  view(`${APP}/tables`, "tables", "tables", "Tables"),
  view(`${APP}/tables/:table`, "tables", "table", "DataTable"),
  view(`${APP}/alarms`, "alarms", "alarms", "Alarms"),
  view(`${APP}/alarms/rules`, "alarms", "alarms", "AlarmRules"),
  view(`${APP}/alarms/rules/:rule`, "alarms", "alarms", "AlarmRule"),
  view(`${APP}/alarms/groups`, "alarms", "alarm_groups", "AlarmGroups"),
  view(`${APP}/alarms/groups/:group`, "alarms", "alarm_groups", "AlarmGroup"),
  view(`${APP}/events`, "events", "events", "Events"),
  view(`${APP}/events/:event`, "events", "event", "Event"),
  view(`${APP}/workflows`, "workflows", "workflows", "Workflows"),
  view(`${APP}/workflows/:flow`, "workflows", "workflow", "Workflow"),
  view(`${APP}/workflows/:flow/:tab`, "workflows", "workflow", "Workflow"),
  view(`${APP}/dashboards`, "dashboards", "dashboards", "Dashboards"),
  view(`${APP}/dashboards/:dashboard`, "dashboards", "dashboard", "Dashboard"),
  view(`${APP}/files`, "files", "files", "Files"),
  view(`${APP}/jobs`, "jobs", "jobs", "Jobs"),
  view(`${APP}/webhooks`, "webhooks", "webhooks", "Webhooks"),
  view(`${APP}/webhooks/:webhook`, "webhooks", "webhooks", "Webhook"),
  view(`${APP}/integrations`, "integrations", "integrations", "Integrations"),
  view(`${APP}/integrations/:integration`, "integrations", "integrations", "Integration"),
  view(`${APP}/topics`, "topics", "topics", "Topics"),
  view(`${APP}/experience`, "experience", "experience", "Experience"),
  view(`${APP}/experience/:tab`, "experience", "experience", "Experience"),
  view(`${APP}/experience/:tab/:record`, "experience", "experience", "ExperienceRecord"),
  view(`${APP}/keys`, "keys", "keys", "Keys"),
  view(`${APP}/keys/:accessKey`, "keys", "keys", "Key"),
  view(`${APP}/tokens`, "tokens", "tokens", "Tokens"),
  view(`${APP}/tokens/:token`, "tokens", "tokens", "Token"),
  view(`${APP}/certificates`, "certificates", "certificates", "Certificates"),
  view(`${APP}/certificates/:certificate`, "certificates", "certificates", "Certificate"),
  view(`${APP}/credentials`, "credentials", "credentials", "Credentials"),
  view(`${APP}/credentials/:credential`, "credentials", "credentials", "Credential"),
  view(`${APP}/actors`, "actors", "actors", "Actors"),
  view(`${APP}/settings`, "settings", "settings", "Settings"),
  view(`${APP}/settings/:tab`, "settings", "settings", "Settings"),
  view("/organizations", "organizations", "organizations", "Organizations"),
  view("/organizations/:org", "organizations", "organization", "Organization"),
  view("/organizations/:org/:tab", "organizations", "organization", "Organization"),
  view("/dashboards", "boards", "dashboards", "AllDashboards"),
  view("/dashboards/:dashboard", "boards", "dashboard", "Dashboard"),
  view("/account", "account", "account", "Account"),
  view("/account/:tab", "account", "account", "Account"),
  view("/server", "server", "server", "Server"),
  view("/shared/:dashboard", "", "shared", "Shared", { open: true }),
];

// The navigation of an application: [title, [[section, text, path below the application], ...]].
export const SECTIONS = [
  ["", [["overview", "Overview", ""], ["alarms", "Alarms", "alarms"], ["events", "Events", "events"], ["dashboards", "Dashboards", "dashboards"]]],
  ["Devices", [["devices", "Devices", "devices"], ["recipes", "Recipes", "recipes"]]],
  ["Data", [["tables", "Data tables", "tables"], ["files", "Files", "files"], ["jobs", "Jobs", "jobs"]]],
  ["Automation", [["workflows", "Workflows", "workflows"], ["webhooks", "Webhooks", "webhooks"], ["integrations", "Integrations", "integrations"], ["topics", "Topics", "topics"], ["experience", "Experience", "experience"]]],
  ["Access", [["keys", "Access keys", "keys"], ["tokens", "API tokens", "tokens"], ["certificates", "Certificates", "certificates"], ["credentials", "Credentials", "credentials"]]],
  ["Operation", [["actors", "Actors", "actors"], ["settings", "Settings", "settings"]]],
];
