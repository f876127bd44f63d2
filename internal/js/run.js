// Runs one function body. The outer function starts it and returns a function that returns
// the outcome: "" while it is pending, "+" and the result as JSON, or "-" and a report of
// the failure.
((code, text, maxLength) => {
  "use strict";
  const { parse, stringify } = JSON;
  const Text = String;
  const nothing = () => {};
  globalThis.console = { log: nothing, info: nothing, warn: nothing, error: nothing, debug: nothing };

  const describe = (e) => {
    if (e instanceof Error) return { name: Text(e.name), message: Text(e.message), stack: Text(e.stack) };
    return { name: "", message: typeof e === "object" && e !== null ? stringify(e) : Text(e), stack: "" };
  };
  const fail = (e, code) => {
    let report;
    try { report = describe(e); } catch { report = { name: "", message: "a value that cannot be shown", stack: "" }; }
    return "-" + stringify({ ...report, code });
  };
  const pack = (value) => {
    if (value === undefined) return "+null";
    let result;
    try { result = stringify(value); } catch (e) { return fail(e, "notJSON"); }
    if (result === undefined) return fail(`a ${typeof value}`, "notJSON");
    if (result.length > maxLength) return "-" + stringify({ code: "large", length: result.length });
    return "+" + result;
  };

  let outcome = "";
  const compile = (async () => {}).constructor;
  (async () => {
    try {
      const body = compile("input", code);
      outcome = pack(await body(text === "" ? undefined : parse(text)));
    } catch (e) { outcome = fail(e, "threw"); }
  })();
  return () => outcome;
})
