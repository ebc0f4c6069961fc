// How a script is called, and its console.
//
// The value of this file is a function of the bounds, which returns the parts that child.py calls. It keeps the
// functions it needs in constants, because a script may replace all that it can reach.
//
// child.py makes one line of this file, so that a stack tells its lines from those of the script, which begins in the
// second. So a comment has a line of its own, and every statement ends with a semicolon.
(function (payloadBytesMax, logBytesMax) {
  "use strict";
  const { parse, stringify } = JSON;
  const evaluate = eval;
  const toText = String;
  const PromiseOfStart = Promise;
  const uncurried = Function.prototype.bind.bind(Function.prototype.call);
  const slice = uncurried(String.prototype.slice);
  const join = uncurried(Array.prototype.join);
  const charCodeAt = uncurried(String.prototype.charCodeAt);

  // The call.

  function callScript(frame) {
    let result;
    try {
      const call = parse(frame);
      const script = evaluate("(function (payload) {\n" + call.script + "\n})");
      frame = call.script = "";
      const returned = script(call.payload);
      result = returned === undefined ? call.payload : returned;
    } catch (thrown) {
      return failureOf(thrown);
    }
    let text;
    try {
      if (result instanceof PromiseOfStart) {
        return failure(typeError, "The script returned a promise; what it returns has to be known when it ends.", "");
      }
      text = stringify(result);
    } catch (thrown) {
      return failure(typeError, "The result cannot be written as JSON: " + described(thrown).message, "");
    }
    if (text === undefined) {
      return failure(typeError, "The result is a " + typeof result + ", which JSON does not have.", "");
    }
    if (text.length > payloadBytesMax) {
      return failure("PayloadTooLarge", "The result is larger than " + payloadBytesMax + " bytes.", "");
    }
    return joined(['{"value":', text, "}"]);
  }

  const typeError = "FunctionNodeTypeError";

  function failureOf(thrown) {
    const { name, message, stack } = described(thrown);
    return failure(name, message, stack);
  }

  function failure(name, message, stack) {
    const texts = ['{"error":{"name":', stringify(name), ',"message":', stringify(message), ',"stack":', stringify(stack)];
    return joined([joined(texts), "}}"]);
  }

  // The library does not know the ropes that + makes of long texts.
  function joined(texts) {
    return join(texts, "");
  }

  // What was thrown may be anything, and reading it may throw again.
  function described(thrown) {
    try {
      if (typeof thrown === "object" && thrown !== null && typeof thrown.message === "string") {
        const { name, message, stack } = thrown;
        return {
          name: typeof name === "string" ? slice(name, 0, 255) : "Error",
          message: slice(toText(message), 0, 4096),
          stack: typeof stack === "string" ? slice(stack, 0, 8192) : "",
        };
      }
      return { name: "Error", message: slice(shown(thrown), 0, 4096), stack: "" };
    } catch {
      return { name: "Error", message: "The script threw a value that cannot be shown.", stack: "" };
    }
  }

  // The console.

  let logs = "";
  let logBytes = 0;
  let logsCut = false;

  function shown(value) {
    if (typeof value === "string") return value;
    if (typeof value !== "object" || value === null) return toText(value);
    if (value instanceof Error) return toText(value);
    return stringify(value) ?? toText(value);
  }

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

  globalThis.console = {
    debug(...values) {
      log("debug", values);
    },
    log(...values) {
      log("log", values);
    },
    info(...values) {
      log("info", values);
    },
    warn(...values) {
      log("warn", values);
    },
    error(...values) {
      log("error", values);
    },
  };

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

  const parts = { call: callScript, logs: () => joined(["[", logs, "]"]), utf8Length };
  return (name) => parts[name];
});
