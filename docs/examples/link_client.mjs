// A client of the device link in JSON: states are sent again until they are stored, and commands are printed.
//
//   node link_client.mjs ws://HOST/applications/APPLICATION/devices/DEVICE/link TOKEN < states
//
// `states` has one state a line, its time and its values in JSON: [1700000000000, {"temp": 21.5}]. Each command is
// printed as a line of JSON. The client ends when all that it read is stored; if a state was refused, or a line is none,
// it says so, goes on, and ends with status 1. It keeps nothing over a restart of its own.
// It needs no package: Node 22 and browsers have WebSocket, Node 20 with the option --experimental-websocket.

const HELLO = 0, REPORT = 1, RECEIVED = 4, WELCOME = 0, STORED = 1, REFUSAL = 2, COMMAND = 3;
// The close codes after which a client connects again. Others need a person.
const LATER = new Set([1001, 1005, 1006, 1011, 4408, 4503]);
const WAITING_MAX = 1000, SILENCE_MS = 30_000;

export class LinkClient {
  #url; #token; #onCommand;
  #session = Math.floor(Math.random() * 2 ** 53);
  #n = 0;
  #waiting = [];      // frames that are not acknowledged, in the order of their numbers
  #sent = 0;          // so many of them were sent on this connection
  #window = 0;        // 0 until the server has said welcome
  #pauseUntil = 0;
  #commands = [];     // those that came of late
  #socket; #silence;  // and the timer that ends a connection on which nothing comes
  #delayMs = 1000;
  #problem = null;
  #changed = [];      // who waits for a change
  refused = 0;        // so many frames were dropped

  constructor(url, token, onCommand) {
    [this.#url, this.#token, this.#onCommand] = [url, token, onCommand];
    this.#connect();
  }

  // Send a frame with states: what follows its number. Waits while too many are not acknowledged.
  async send(kind, ...body) {
    await this.#until(() => this.#waiting.length < WAITING_MAX);
    this.#waiting.push([kind, ++this.#n, ...body]);
    this.#sendWaiting();
  }

  // Wait until all is stored. Throws if the link has ended for good.
  async close() {
    await this.#until(() => this.#waiting.length === 0);
    this.#problem = "closed";
    this.#heard();
    this.#socket?.close(1000);
  }

  async #until(condition) {
    while (!this.#problem && !condition()) await new Promise((resume) => this.#changed.push(resume));
    if (this.#problem) throw new Error(this.#problem);
  }

  #connect() {
    const socket = this.#socket = new WebSocket(this.#url, ["trunkline.link.v1+json"]);
    this.#listen();
    socket.onopen = () => this.#write([HELLO, { session: this.#session, token: this.#token }]);
    socket.onclose = (event) => this.#over(socket, event.code, event.reason);
    socket.onerror = () => setTimeout(() => this.#over(socket, 1006), 100);  // the code may come after it, or never
    socket.onmessage = (event) => { if (this.#socket === socket) this.#take(JSON.parse(event.data)); };
  }

  #listen() {
    const socket = this.#socket;
    this.#silence ??= setTimeout(() => this.#over(socket, 1006), SILENCE_MS);
  }

  #heard() {
    clearTimeout(this.#silence);
    this.#silence = null;
  }

  #over(socket, code, reason) {
    if (this.#socket !== socket) return;  // it was over before
    this.#heard();
    this.#socket = null;
    this.#window = 0;
    socket.close();
    if (!LATER.has(code)) this.#problem ??= `${code}: ${reason}`;
    if (!this.#problem) setTimeout(() => this.#connect(), this.#delayMs * (0.5 + Math.random() / 2));
    this.#delayMs = Math.min(60_000, this.#delayMs * 2);
    this.#wake();
  }

  #write(frame) {
    this.#socket.send(JSON.stringify(frame));
  }

  #sendWaiting() {
    if (Date.now() < this.#pauseUntil) return;
    while (this.#sent < Math.min(this.#waiting.length, this.#window)) this.#write(this.#waiting[this.#sent++]);
    if (this.#sent) this.#listen();
  }

  #take([kind, ...body]) {
    this.#heard();
    if (kind === WELCOME) this.#welcome(body[0]);
    if (kind === STORED) this.#stored(body[0]);
    if (kind === REFUSAL) this.#refused(...body);
    if (kind === COMMAND) this.#command(...body);
    this.#sendWaiting();
    this.#wake();
  }

  #welcome(facts) {
    this.#sent = 0;
    this.#window = facts.window;
    this.#delayMs = 1000;
    this.#stored(facts.n);
  }

  #stored(n) {
    while (this.#waiting.length && this.#waiting[0][1] <= n) {
      this.#waiting.shift();
      this.#sent = Math.max(0, this.#sent - 1);
    }
  }

  // A frame that came too early goes into a new frame; any other is dropped.
  #refused(n, error, message, more) {
    const [frame] = this.#waiting.splice(this.#waiting.findIndex((each) => each[1] === n), 1);
    this.#sent--;
    if (!more?.retryMs) {
      this.refused++;
      return console.error(`${JSON.stringify(frame)} is refused: ${error}: ${message}`);
    }
    this.#waiting.push([frame[0], ++this.#n, ...frame.slice(2)]);
    this.#pauseUntil = Date.now() + more.retryMs;
    setTimeout(() => this.#sendWaiting(), more.retryMs + 1);
  }

  #command(id, name, payload, timeMs, ...device) {
    const key = [id, ...device].join();
    if (!this.#commands.includes(key)) {
      this.#onCommand(id, name, payload, ...device);
      this.#commands = [...this.#commands.slice(-999), key];
    }
    this.#write([RECEIVED, id, ...device]);
  }

  #wake() {
    for (const resume of this.#changed.splice(0)) resume();
  }
}

// The time and the values of a line; throws an error if it has none.
function stateOf(line) {
  const state = JSON.parse(line);
  const [time, values] = Array.isArray(state) && state.length === 2 ? state : [];
  if ((time === null || Number.isInteger(time)) && values?.constructor === Object && Object.keys(values).length) return state;
  throw new Error('not a time and its values, such as [1700000000000, {"temp": 21.5}]');
}

if (globalThis.process?.argv[1]?.endsWith("link_client.mjs")) {
  const { createInterface } = await import("node:readline");
  const [url, token] = process.argv.slice(2);
  const link = new LinkClient(url, token, (...command) => console.log(JSON.stringify(command)));
  let number = 0, wrong = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    number++;
    if (!line.trim()) continue;
    let state;
    try {
      state = stateOf(line);
    } catch (error) {
      wrong++;
      console.error(`line ${number} is left out: ${error.message}`);
      continue;
    }
    await link.send(REPORT, ...state);
  }
  await link.close();
  process.exitCode = wrong || link.refused ? 1 : 0;
}
