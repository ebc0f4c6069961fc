"use strict";

// The page of the API. Five things differ from what Swagger UI does by itself:
// - Only the groups are shown at first, and no list of types: Swagger UI shows more than about 120 operations badly.
// - All operations are listed below the groups, because the browser does not find what Swagger UI has not drawn.
// - A login on this page is used for the other calls.
// - The events of a stream are shown as they come. Swagger UI waits for the end of a body, and a stream has none; so
//   its request is made here, and Swagger UI gets what had come when the reader stopped it.
// - Parameters that are JSON are empty fields for text. Swagger UI would fill them with an invented value.

const CHARACTERS_MAX = 200000;

const part = (name) => document.getElementById("stream" + name);
let stopStream = null;

async function fetchStream(url, request) {
  if (stopStream) stopStream();
  const abort = new AbortController();
  const answer = await fetch(url, { ...request, signal: abort.signal });
  const type = answer.headers.get("content-type") || "";
  if (!answer.ok || !type.startsWith("text/event-stream")) return answer;

  let text = "", events = 0;
  const show = (state) => {
    part("-state").textContent = `${events} events, ${state}`;
    part("-events").textContent = text;
    part("-events").scrollTop = part("-events").scrollHeight;
  };
  const stop = () => abort.abort();
  stopStream = stop;
  part("-name").textContent = new URL(url, location.href).pathname.split("/").pop();
  part("-stop").onclick = stop;
  part("").hidden = false;
  show("waiting for more");
  const reader = answer.body.getReader(), decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const piece = decoder.decode(value, { stream: true });
      events += piece.split("event: ").length - 1;
      text = (text + piece).slice(-CHARACTERS_MAX);
      show("waiting for more");
    }
  } catch (error) {
    if (!abort.signal.aborted) text += `\n(the stream broke off: ${error.message})\n`;
  }
  if (stopStream === stop) {
    stopStream = null;
    part("").hidden = true;
  }
  return new Response(text, { status: answer.status, headers: answer.headers });
}

function jsonParametersAsText(api) {
  for (const item of Object.values(api.paths)) {
    for (const operation of Object.values(item)) {
      for (const parameter of operation.parameters) {
        if (!parameter.content) continue;
        delete parameter.content;
        parameter.schema = { type: "string" };
        parameter.description += ", as JSON";
      }
    }
  }
  return api;
}

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

function listOperations(api, open) {
  const groups = new Map(api.tags.map((tag) => [tag.name, element("ul")]));
  for (const [path, item] of Object.entries(api.paths)) {
    for (const [method, { operationId, summary, tags }] of Object.entries(item)) {
      const link = element("a", summary);
      link.href = `#/${encodeURIComponent(tags[0])}/${encodeURIComponent(operationId)}`;
      link.onclick = (event) => {
        event.preventDefault();
        open(tags[0], operationId);
      };
      const call = element("code", `${method.toUpperCase()} ${path}`);
      groups.get(tags[0]).append(element("li", link, ` ${operationId} `, element("br"), call));
    }
  }
  const columns = element("div");
  for (const [name, list] of groups) {
    if (list.children.length) columns.append(element("h3", name), list);
  }
  const section = document.getElementById("operations");
  section.append(columns);
  section.hidden = false;
}

function openOperation(ui, tag, operation) {
  const { layoutActions } = ui.getSystem();
  layoutActions.show(["operations-tag", tag], true);
  layoutActions.show(["operations", tag, operation], true);
  const shown = () => [...document.querySelectorAll(".opblock")].find((block) => block.id.replaceAll("\\", "").endsWith(`-${operation}`));
  const scroll = (left) => {
    const block = shown();
    if (block) block.scrollIntoView();
    else if (left) requestAnimationFrame(() => scroll(left - 1));
  };
  scroll(120);
}

function show(api) {
  const ui = SwaggerUIBundle({
    spec: jsonParametersAsText(api),
    dom_id: "#api",
    deepLinking: true,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    filter: true,
    tryItOutEnabled: true,
    requestInterceptor: (request) => {
      const accepted = (request.headers && (request.headers.accept || request.headers.Accept)) || "";
      if (accepted.includes("text/event-stream")) request.userFetch = fetchStream;
      return request;
    },
    responseInterceptor: (answer) => {
      const isLogin = answer.ok && new URL(answer.url, location.href).pathname === "/auth/user";
      if (isLogin && answer.obj) ui.preauthorizeApiKey("bearer", answer.obj.token);
      return answer;
    },
  });
  listOperations(api, (tag, operation) => openOperation(ui, tag, operation));
}

fetch("/openapi.json").then((answer) => answer.json()).then(show);
