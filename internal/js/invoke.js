// The door between Go and a VM: JSON text in, JSON text out. It keeps its own
// references, so that no script can put others in their place.
(() => {
  "use strict";
  const { parse, stringify } = JSON;
  return (name, text) => {
    const fn = globalThis[name];
    if (typeof fn !== "function") throw new TypeError(`${name} is not a function`);
    const value = fn(text === "" ? undefined : parse(text));
    if (value === undefined) return "null";
    const result = stringify(value);
    if (result === undefined) throw new TypeError(`${name} returned a ${typeof value}, which JSON cannot carry`);
    return result;
  };
})()
