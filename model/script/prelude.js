// The prelude of an agent script: its globals, and the functions with which package script steps it.
(() => {
  "use strict";
  const { parse, stringify } = JSON;
  const { defineProperty, freeze, getPrototypeOf } = Object;
  const { Error, TypeError } = globalThis;
  const generators = getPrototypeOf(function* () {});
  const roles = new Map();
  const requests = new WeakMap(); // the ops of the tokens that call, hire, receive and say returned
  const unyielded = new Map(); // tokens that were not yielded yet, with an Error of the place that made them
  let self, tools, generator;
  let lines = [];

  const request = (content) => {
    const token = freeze({});
    requests.set(token, content);
    unyielded.set(token, new Error());
    return token;
  };
  const format = (value) => {
    if (typeof value === "string") return value;
    try { return stringify(value) ?? String(value); } catch { return String(value); }
  };

  const globals = {
    role(name, script) {
      if (typeof name !== "string") throw new TypeError(`role(name, function*): the name is ${format(name)}, not a string`);
      if (typeof script !== "function" || getPrototypeOf(script) !== generators)
        throw new TypeError(`role(${stringify(name)}, function*): the script is not a generator function`);
      if (roles.has(name)) throw new TypeError(`role(${stringify(name)}) is defined twice`);
      roles.set(name, script);
    },
    call(name, args = {}) {
      if (typeof name !== "string") throw new TypeError(`call(tool, args): the tool is ${format(name)}, not a name`);
      const text = typeof args === "object" ? stringify(args) : undefined;
      if (text === undefined || text[0] !== "{") throw new TypeError(`call(${stringify(name)}, args): args is ${format(args)}, not an object`);
      return request({ op: "calls", calls: [{ name, args: text }] });
    },
    hire(role, text, data) {
      if (typeof role !== "string") throw new TypeError(`hire(role, text, data): the role is ${format(role)}, not a name`);
      if (typeof text !== "string") throw new TypeError(`hire(${stringify(role)}, text, data): the text is ${format(text)}, not a string`);
      if (data !== undefined && stringify(data) === undefined) throw new TypeError(`hire(${stringify(role)}, text, data): the data is a ${typeof data}, which JSON cannot represent`);
      const taskBrief = {
        objective: text, constraints: [], inputs: data === undefined ? "none" : "the field data of the first message",
        outputs: "an answer", completion_criteria: "the answer has what the objective asks for",
      };
      const args = stringify({ roleId: role, taskBrief, initialMessage: { text, data } });
      return request({ op: "calls", calls: [{ name: "spawn_agent_with_task", args }], source: `hire(${stringify(role)}, …)` });
    },
    receive() { return request({ op: "receive" }); },
    say(text) {
      if (typeof text !== "string") throw new TypeError(`say(text): the text is ${format(text)}, not a string`);
      return request({ op: "say", text });
    },
  };
  for (const name of Object.keys(globals)) defineProperty(globalThis, name, { value: globals[name], writable: true, configurable: true });
  defineProperty(globalThis, "self", { get: () => self, configurable: true });
  defineProperty(globalThis, "tools", { get: () => tools, configurable: true });

  const maxLines = 500, maxLength = 4000;
  const log = (...values) => {
    if (lines.length < maxLines) lines.push(values.map(format).join(" ").slice(0, maxLength));
    else if (lines.length === maxLines) lines.push("… further lines are omitted");
  };
  defineProperty(globalThis, "console", { value: { log, info: log, warn: log, error: log, debug: log }, writable: true, configurable: true });

  const single = (value) => {
    const content = value !== null && typeof value === "object" ? requests.get(value) : undefined;
    if (content === undefined) throw new TypeError(`the script yielded ${format(value)}: yield call(), hire(), a list of calls, receive() or say()`);
    unyielded.delete(value);
    return content;
  };
  const callList = (list) => {
    const calls = list.map((value) => {
      const content = single(value);
      if (content.op !== "calls") throw new TypeError(`the script yielded a list with ${content.op}(): a list may contain calls only`);
      return content.calls[0];
    });
    return { op: "calls", calls, list: true };
  };
  const end = (value) => {
    const text = value === undefined ? "null" : stringify(value);
    if (text === undefined) throw new TypeError(`the script returned a ${typeof value}, which JSON cannot represent`);
    return { op: "end", value: text };
  };

  // Throws if the script waits or ends and has made a call, hire, receive or say without yield. A
  // call may be made first and yielded later, but a script that waits may wait for ever.
  const checkYielded = () => {
    for (const [token, place] of unyielded) {
      const { op, calls, source } = requests.get(token);
      const text = source ?? (op === "calls" ? `call(${stringify(calls[0].name)}, …)` : op === "say" ? "say(…)" : "receive()");
      const error = new TypeError(`${text} without yield does nothing: write yield ${text}`);
      error.stack = place.stack;
      throw error;
    }
  };
  const returned = (value) => {
    checkYielded();
    return end(value);
  };
  const yielded = (value) => {
    let op;
    try { op = Array.isArray(value) ? callList(value) : single(value); } catch (error) { throwAtYield(error); }
    if (op.op === "receive") checkYielded();
    return op;
  };
  // Throws an error at the place where the script waits, so that the error names this place.
  // A script that catches it does not go on.
  const throwAtYield = (error) => {
    delete error.stack;
    try { generator.throw(error); } catch {}
    throw error;
  };

  const advance = (value) => {
    let step = generator.next(value);
    while (!step.done && Array.isArray(step.value) && step.value.length === 0) step = generator.next([]);
    const op = step.done ? returned(step.value) : yielded(step.value);
    const log = lines;
    lines = [];
    return { ...op, log };
  };
  const functions = {
    // Returns the names of the roles that have a script.
    roles() { return [...roles.keys()]; },
    // Starts the script of self.role and runs it to its first yield.
    start(step) {
      self = freeze(step.self);
      tools = freeze(step.tools);
      generator = (roles.get(self.role) ?? roles.get("*"))(step.value);
      return advance(undefined);
    },
    // Continues with the value that the last yield evaluates to.
    resume(step) {
      self = freeze(step.self);
      tools = freeze(step.tools);
      return advance(step.value);
    },
  };
  for (const name of Object.keys(functions)) defineProperty(globalThis, "rolecall." + name, { value: functions[name] });
})();
