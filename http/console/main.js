// The console starts here: the frame with the navigation, and the view of the current address.

import { access, findAccess, offered, rightsPlace } from "./lib/access.js";
import { request } from "./lib/api.js";
import { applicationName, currentApplication, useApplication } from "./lib/application.js";
import { listenToKeys, PLACES } from "./lib/keyboard.js";
import { isOperator, useMe } from "./lib/me.js";
import { link, match, route } from "./lib/router.js";
import { continueLogin, keepFresh, listenToTabs, logOut, remembered, session } from "./lib/session.js";
import { chooseTheme, theme } from "./lib/theme.js";
import { Component, html, render, signal, useEffect, useRef, useState } from "./lib/ui.js";
import { Arrival, Notice, Page, Problem, Shape } from "./parts/basics.js";
import { Dialogs, openDialog } from "./parts/dialog.js";
import { Icon, IconButton } from "./parts/icon.js";
import { LogIn } from "./parts/login.js";
import { Notes } from "./parts/notes.js";
import { openRowsByClick } from "./parts/table.js";
import { ROUTES, SECTIONS } from "./routes.js";
import { AlarmBadge } from "./views/alarms/badge.js";

const ROOM_PX = 8;

const menuOpen = signal(false);

function Console() {
  const found = match(ROUTES, route.value.path);
  if (found?.row.open) return html`<${View} key=${route.value.path} found=${found} /><${Dialogs} /><${Notes} />`;
  if (!session.value) return html`<${LogIn} />`;
  return html`<div class="frame" data-may=${offered(found?.row.section)}>
    <a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); document.querySelector("main").focus(); }}>Skip to the content</a>
    <header class="menu-bar"><a class="brand" href="#/"><img src="/favicon.svg" alt="" width="24" height="24" /> Trunkline</a>
      <button aria-expanded=${menuOpen.value} aria-controls="side" onClick=${() => (menuOpen.value = !menuOpen.value)}><${Icon} name="menu" />Menu</button></header>
    <${Side} section=${found?.row.section} />
    <main class="view" id="content" tabindex="-1">${access.value.may === "read" && html`<${OnlyReading} />`}<${View} key=${viewKey(found)} found=${found} /></main>
  </div><${Dialogs} /><${Notes} />`;
}

// A view is made anew when its record changes, and kept when only its tab or its query does.
const viewKey = (found) => found && found.row.file + JSON.stringify({ ...found.params, tab: undefined });

function Side({ section }) {
  const app = currentApplication();
  const name = applicationName();
  const place = rightsPlace();
  useApplication(app);
  const side = useRef(null);
  useMe();
  useEffect(() => {
    const abort = new AbortController();
    findAccess(place, abort.signal).catch(() => {}); // the view says what is wrong
    return () => abort.abort();
  }, [place]);
  useEffect(() => { menuOpen.value = false; }, [route.value.path]);
  useEffect(() => showCurrent(side.current), [section, name]);
  const item = ([key, text, address]) => html`<a href=${address} aria-current=${key === section ? "page" : undefined}><${Icon} name=${key} />${text}${key === "alarms" && html`<${AlarmBadge} app=${app} />`}</a>`;
  const dark = theme.value === "dark";
  return html`<aside ref=${side} id="side" class=${menuOpen.value ? "side open" : "side"}>
    <a class="brand" href="#/"><img src="/favicon.svg" alt="" width="24" height="24" /> Trunkline</a>
    <nav aria-label="Console">
      ${[["applications", "Applications", link("/applications")], ["organizations", "Organizations", link("/organizations")], ["boards", "Dashboards", link("/dashboards")], isOperator() && ["server", "Server", link("/server")], ["account", "Your account", link("/account")]].filter(Boolean).map(item)}
    </nav>
    ${app && html`<nav aria-label="Application"><h2 class="application">${name || "Application"}</h2>
      ${SECTIONS.map(([title, items]) => html`${title && html`<h2>${title}</h2>`}
        ${items.map(([key, text, place]) => item([key, text, place ? link("/applications", app, place) : link("/applications", app)]))}`)}</nav>`}
    <div class="foot">
      <span class="row"><span class="quiet break">${session.value.email}</span> <a href="/docs" target="_blank" rel="noopener">API</a></span>
      <div class="row">
        <${IconButton} icon=${dark ? "sun" : "moon"} label=${dark ? "Light" : "Dark"} onClick=${() => chooseTheme(dark ? "light" : "dark")} />
        <${IconButton} icon="keyboard" label="Keys" onClick=${showHelp} />
        <button class="small" onClick=${() => logOut(request)}><${Icon} name="leave" />Log out</button>
      </div>
    </div>
  </aside>`;
}

// Why nothing can be changed here, and who can alter that.
function OnlyReading() {
  const { role, organizationName, administrators } = access.value;
  return html`<${Notice}>You may read this ${currentApplication() ? "application" : "dashboard"} and change nothing: your role in ${organizationName} is <b>${role}</b>.
    ${administrators.length > 0 && ` An administrator can give you another one: ${administrators.join(", ")}.`}</${Notice}>`;
}

// Scroll the navigation so that the link to the current section is in sight, and not behind the foot.
function showCurrent(side) {
  const current = side.querySelector("[aria-current]")?.getBoundingClientRect();
  if (!current) return;
  const below = current.bottom + ROOM_PX - side.querySelector(".foot").getBoundingClientRect().top;
  const above = side.getBoundingClientRect().top + ROOM_PX - current.top;
  if (below > 0) side.scrollTop += below;
  else if (above > 0) side.scrollTop -= above;
}

function showHelp() {
  const keys = [
    ["/", "Search the list"], ["n", "Create something in this view"], ["j k", "Next and previous row"], ["Enter", "Open the row"],
    ["Esc", "Close a dialog, leave a field"], ["?", "These keys"],
    ...Object.entries(PLACES).map(([key, [text]]) => [`g ${key}`, text]),
  ];
  openDialog("Keys", () => html`<table><tbody>${keys.map(([key, text]) => html`<tr><td>${key.split(" ").map((each) => html`<kbd>${each}</kbd> `)}</td><td>${text}</td></tr>`)}</tbody></table>`);
}

// The view of an address. Its file is loaded first.
function View({ found }) {
  const [loaded, setLoaded] = useState({});
  const arrival = useRef({ due: true });
  useEffect(() => {
    let over = false;
    found?.row.load().then((view) => over || setLoaded({ view }), (error) => over || setLoaded({ error }));
    scrollTo(0, 0);
    return () => (over = true);
  }, [found?.row]);
  if (!found) return html`<${Arrival.Provider} value=${arrival.current}><${Page} title="There is no such page"><p><a href="#/">Go to the start.</a></p></${Page}></${Arrival.Provider}>`;
  if (loaded.error) return html`<${Problem} error=${{ message: `This page cannot be loaded: ${loaded.error.message}` }} retry=${() => location.reload()} />`;
  if (!loaded.view) return html`<${Shape} />`;
  return html`<${Arrival.Provider} value=${arrival.current}>
    <div><${Boundary} place=${route.value.path}><${loaded.view} ...${found.params} /></${Boundary}></div></${Arrival.Provider}>`;
}

// Shows what went wrong in a view instead of an empty page.
class Boundary extends Component {
  state = { error: null };

  static getDerivedStateFromError(error) {
    return { error };
  }

  componentDidCatch(error) {
    console.error(error);
  }

  // Another tab of the view may be without the fault.
  componentDidUpdate({ place }) {
    if (this.state.error && place !== this.props.place) this.setState({ error: null });
  }

  render({ children }, { error }) {
    if (!error) return children;
    const message = `This page has a fault: ${error.message}`;
    return html`<${Problem} error=${{ message }} retry=${() => this.setState({ error: null })} />`;
  }
}

if (remembered()) match(ROUTES, route.value.path)?.row.load().catch(() => {}); // meanwhile; the view says if it fails
await continueLogin(request);
keepFresh(request);
listenToTabs(request);
listenToKeys(showHelp);
openRowsByClick();
const root = document.getElementById("console");
root.textContent = "";
render(html`<${Console} />`, root);
