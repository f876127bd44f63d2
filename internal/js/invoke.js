// Calls a global function with JSON text and returns JSON text. It keeps its own references
// to JSON's functions, so that scripts cannot replace them.
(() => {
  "use strict";
  const { parse, stringify } = JSON;
  return (name, text) => {
    const fn = globalThis[name];
    if (typeof fn !== "function") throw new TypeError(`${name} is not a function`);
    const value = fn(text === "" ? undefined : parse(text));
    if (value === undefined) return "null";
    const result = stringify(value);
    if (result === undefined) throw new TypeError(`${name} returned a ${typeof value}, which JSON cannot represent`);
    return result;
  };
})()
