// The console of a script: it keeps what is written, up to a bound.
//
// Only scripts that name it get it; see prelude.js.
(function (kit) {
  "use strict";
  const { logBytesMax, stringify, slice, charCodeAt, joined, shown, keepLogs } = kit;
  let logs = "";
  let logBytes = 0;
  let logsCut = false;

  function log(level, values) {
    if (logsCut) return;
    let text = "";
    for (let at = 0; at < values.length; at += 1) {
      let part;
      try {
        part = shown(values[at]);
      } catch {
        part = "(cannot be shown)";
      }
      text += (at > 0 ? " " : "") + slice(part, 0, logBytesMax);
      if (text.length > logBytesMax) break;
    }
    logBytes += 16 + utf8Length(text);
    if (logBytes > logBytesMax) {
      logsCut = true;
      level = "warn";
      text = "Further messages of the script are left out.";
    }
    logs += (logs ? "," : "") + '{"level":"' + level + '","text":' + stringify(text) + "}";
  }

  globalThis.console = {};
  for (const level of ["debug", "log", "info", "warn", "error"]) {
    console[level] = (...values) => log(level, values);
  }

  function utf8Length(text) {
    let bytes = text.length;
    for (let at = 0; at < text.length; at += 1) {
      const unit = charCodeAt(text, at);
      if (unit < 0x80) continue;
      bytes += unit < 0x800 ? 1 : 2;
      if (unit >= 0xd800 && unit < 0xdc00) {
        // A pair of two units has four bytes.
        const next = charCodeAt(text, at + 1);
        if (next >= 0xdc00 && next < 0xe000) at += 1;
      }
    }
    return bytes;
  }

  keepLogs(() => joined(["[", logs, "]"]));
});
