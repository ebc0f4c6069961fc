// How a script is called, and what becomes of its result.
//
// The value of this file is a function of the bounds, which returns the parts that child.py calls. It keeps the
// functions it needs in constants, because a script may replace all that it can reach.
//
// Compiling this file is most of the work for a short script, so it has nothing that only some scripts need. child.py
// makes one line of it, so that a stack tells its lines from those of the script, which begins in the second. So a comment
// has a line of its own, and every statement ends with a semicolon.
(function (payloadBytesMax, logBytesMax) {
  "use strict";
  const { parse, stringify } = JSON;
  const evaluate = eval;
  const toText = String;
  const PromiseOfStart = Promise;
  const uncurried = Function.prototype.bind.bind(Function.prototype.call);
  const slice = uncurried(String.prototype.slice);
  const join = uncurried(Array.prototype.join);

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

  function shown(value) {
    if (typeof value === "string") return value;
    if (typeof value !== "object" || value === null) return toText(value);
    if (value instanceof Error) return toText(value);
    return stringify(value) ?? toText(value);
  }

  // child.py calls these parts; `kit` is for console.js.

  let logs = () => "[]";
  const keepLogs = (given) => (logs = given);
  const charCodeAt = uncurried(String.prototype.charCodeAt);
  const kit = { logBytesMax, stringify, slice, charCodeAt, joined, shown, keepLogs };
  const parts = { call: callScript, logs: () => logs(), kit };
  return (name) => parts[name];
});
