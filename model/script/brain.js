// What a brain sees beside the language, and the driver that Go steps it with.
(() => {
  "use strict";
  const { parse, stringify } = JSON;
  const { defineProperty, freeze, getPrototypeOf } = Object;
  const generators = getPrototypeOf(function* () {});
  const roles = new Map();
  const requests = new WeakMap(); // what call, receive and say gave out
  let self, tools, generator;
  let lines = [];

  const request = (content) => {
    const token = freeze({});
    requests.set(token, content);
    return token;
  };
  const show = (value) => {
    if (typeof value === "string") return value;
    try { return stringify(value) ?? String(value); } catch { return String(value); }
  };

  const words = {
    role(name, brain) {
      if (typeof name !== "string") throw new TypeError(`role(name, function*): the name is ${show(name)}, not a string`);
      if (typeof brain !== "function" || getPrototypeOf(brain) !== generators)
        throw new TypeError(`role(${stringify(name)}, function*): the brain is not a generator function`);
      if (roles.has(name)) throw new TypeError(`role(${stringify(name)}) is registered twice`);
      roles.set(name, brain);
    },
    call(name, args = {}) {
      if (typeof name !== "string") throw new TypeError(`call(tool, args): the tool is ${show(name)}, not a name`);
      const text = typeof args === "object" ? stringify(args) : undefined;
      if (text === undefined || text[0] !== "{") throw new TypeError(`call(${stringify(name)}, args): args is ${show(args)}, not an object`);
      return request({ op: "calls", calls: [{ name, args: text }] });
    },
    receive() { return request({ op: "receive" }); },
    say(text) {
      if (typeof text !== "string") throw new TypeError(`say(text): the text is ${show(text)}, not a string`);
      return request({ op: "say", text });
    },
  };
  for (const name of Object.keys(words)) defineProperty(globalThis, name, { value: words[name], writable: true, configurable: true });
  defineProperty(globalThis, "self", { get: () => self, configurable: true });
  defineProperty(globalThis, "tools", { get: () => tools, configurable: true });

  const mostLines = 500, mostLength = 4000;
  const log = (...values) => {
    if (lines.length < mostLines) lines.push(values.map(show).join(" ").slice(0, mostLength));
    else if (lines.length === mostLines) lines.push("… further lines are left out");
  };
  defineProperty(globalThis, "console", { value: { log, info: log, warn: log, error: log, debug: log }, writable: true, configurable: true });

  const single = (value) => {
    const content = value !== null && typeof value === "object" ? requests.get(value) : undefined;
    if (content === undefined) throw new TypeError(`the brain yielded ${show(value)}: only call(), a list of calls, receive() and say() may be yielded`);
    return content;
  };
  const several = (list) => {
    const calls = list.map((value) => {
      const content = single(value);
      if (content.op !== "calls") throw new TypeError(`the brain yielded a list with ${content.op}(): only calls stand in lists`);
      return content.calls[0];
    });
    return { op: "calls", calls, list: true };
  };
  const ended = (value) => {
    const text = value === undefined ? "null" : stringify(value);
    if (text === undefined) throw new TypeError(`the brain returned a ${typeof value}, which JSON cannot carry`);
    return { op: "end", value: text };
  };

  const advance = (value) => {
    let step = generator.next(value);
    while (!step.done && Array.isArray(step.value) && step.value.length === 0) step = generator.next([]);
    const wish = step.done ? ended(step.value) : Array.isArray(step.value) ? several(step.value) : single(step.value);
    const log = lines;
    lines = [];
    return { ...wish, log };
  };
  const driver = {
    // The names of the roles that have a brain.
    roles() { return [...roles.keys()]; },
    // Makes what this step sees known, and runs to the next yield.
    start(step) {
      self = freeze(step.self);
      tools = freeze(step.tools);
      generator = (roles.get(self.role) ?? roles.get("*"))(step.value);
      return advance(undefined);
    },
    resume(step) {
      self = freeze(step.self);
      tools = freeze(step.tools);
      return advance(step.value);
    },
  };
  for (const name of Object.keys(driver)) defineProperty(globalThis, "rolecall." + name, { value: driver[name] });
})();
