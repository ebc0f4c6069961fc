// Programs that report a state as a device with its access key, to be copied and run as they stand.
//
// Owns their texts. A device logs in once, and keeps its token; no program has the token of a user, and no address has a secret.

import { pythonText, shellText } from "../../parts/basics.js";

const EXAMPLES = { number: 21.5, boolean: true, gps: "52.5200,13.4050" };
const ATTRIBUTES_MAX = 4;

// A state with values of the first attributes.
export function exampleState(attributes) {
  const shown = attributes.filter((each) => each.dataType !== "blob").slice(0, ATTRIBUTES_MAX);
  return { data: Object.fromEntries((shown.length ? shown : attributes.slice(0, 1)).map(({ name, dataType }) => [name, EXAMPLES[dataType] ?? "text"])) };
}

// [[key, title, note, text], ...]. access: {url: of the server, app, device, key, secret}; state: the state that is sent.
export function snippets(access, state) {
  const { protocol, hostname } = new URL(access.url);
  const isTls = protocol === "https:";
  return [
    ["curl", "curl", "For a shell.", curl(access, state)],
    ["python", "Python", "Python 3, without any package.", python(access, state)],
    ["javascript", "JavaScript", "Node 18 or newer: save it as device.mjs.", javascript(access, state)],
    ["arduino", "Arduino", `For an ESP32: put in your Wi-Fi${isTls ? ", and the certificate of the authority that signed the server's" : ""}.`, arduino(access, state, isTls)],
    ["mqtt", "MQTT", "With mosquitto_pub, where the server has a port for MQTT: 1883, or 8883 with TLS, unless its operator chose another one.", mqtt(access, state, hostname, isTls)],
  ];
}

const credentials = ({ device, key, secret }) => ({ deviceId: device, key, secret });
const statePath = ({ app, device }) => `/applications/${app}/devices/${device}/state`;

const curl = (access, state) => `URL=${shellText(access.url)}
TOKEN=$(curl -s "$URL/auth/device" -H 'Content-Type: application/json' \\
  -d ${shellText(JSON.stringify(credentials(access)))} | sed 's/.*"token": *"\\([^"]*\\)".*/\\1/')
curl -s "$URL${statePath(access)}" -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' -d ${shellText(JSON.stringify(state))}`;

const python = (access, state) => `import json, urllib.request

URL = ${JSON.stringify(access.url)}

def call(path, body, token=None):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)

login = ${pythonText(credentials(access))}
token = call("/auth/device", login)["token"]
print(call(${JSON.stringify(statePath(access))}, ${pythonText(state)}, token))`;

const javascript = (access, state) => `const URL = ${JSON.stringify(access.url)};

async function call(path, body, token) {
  const headers = { "Content-Type": "application/json", ...(token && { Authorization: "Bearer " + token }) };
  const answer = await fetch(URL + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

const { token } = await call("/auth/device", ${JSON.stringify(credentials(access))});
console.log(await call(${JSON.stringify(statePath(access))}, ${JSON.stringify(state)}, token));`;

const arduino = (access, state, isTls) => `#include <WiFi.h>
#include <HTTPClient.h>${isTls ? "\n#include <WiFiClientSecure.h>" : ""}

const char* WIFI = "YOUR WI-FI";
const char* WIFI_PASSWORD = "ITS PASSWORD";
const String URL = ${JSON.stringify(access.url)};
${isTls ? "const char* AUTHORITY = \"-----BEGIN CERTIFICATE-----\\n...\";\nWiFiClientSecure client;" : "WiFiClient client;"}
String token;

String call(const String& path, const String& body) {
  HTTPClient http;
  http.begin(client, URL + path);
  http.addHeader("Content-Type", "application/json");
  if (token.length()) http.addHeader("Authorization", "Bearer " + token);
  http.POST(body);
  String answer = http.getString();
  http.end();
  return answer;
}

void setup() {
  Serial.begin(115200);
  WiFi.begin(WIFI, WIFI_PASSWORD);
  while (WiFi.status() != WL_CONNECTED) delay(250);
${isTls ? "  client.setCACert(AUTHORITY);\n" : ""}  String answer = call("/auth/device", R"(${JSON.stringify(credentials(access))})");
  int from = answer.indexOf("\\"token\\"");
  from = answer.indexOf('"', answer.indexOf(':', from)) + 1;
  token = answer.substring(from, answer.indexOf('"', from));
}

void loop() {
  Serial.println(call(${JSON.stringify(statePath(access))}, R"(${JSON.stringify(state)})"));
  delay(10000);
}`;

const mqtt = ({ device, key, secret }, state, hostname, isTls) => `mosquitto_pub -h ${shellText(hostname)} -p ${isTls ? "8883 --capath /etc/ssl/certs" : "1883"} -q 1 \\
  -i ${device} -u ${shellText(key)} -P ${shellText(secret)} \\
  -t 'losant/${device}/state' -m ${shellText(JSON.stringify(state))}`;

// What a telephone or an installer reads from a QR code. It is no address, so nothing opens it and no server logs it.
export const accessText = (access) => JSON.stringify({ server: access.url, ...credentials(access) });
