// What the agents of a task did, as spans of time. Pure: without a browser.

/** @typedef {import("./stream.js").OrgEvent} OrgEvent */
/**
 * @typedef {object} Span
 * @property {"model" | "tool"} kind
 * @property {number} seq of the event that began it, or of the answer of a model
 * @property {string} agent
 * @property {string} name the tool, or the model
 * @property {number} start milliseconds since 1970
 * @property {number} end NaN while it runs
 * @property {"" | "denied" | "failed"} outcome "" is a success, or not known yet
 * @property {string} [call]
 * @property {string} [code] of a denial or a failure
 */
/**
 * @typedef {object} Trace
 * @property {Map<string, {id: string, name: string, role: string, since: number}>} agents in the order in which they were spawned; since is when their model was asked
 * @property {Span[]} spans
 * @property {Map<string, Span>} calls those of tools by call
 * @property {OrgEvent[]} events oldest first
 * @property {number} last sequence number of the last event
 * @property {number} start
 * @property {number} end
 */

/** @returns {Trace} */
export function newTrace() {
  return { agents: new Map(), spans: [], calls: new Map(), events: [], last: 0, start: NaN, end: NaN };
}

/**
 * Adds an event. It reports whether the event is new.
 * @param {Trace} trace
 * @param {OrgEvent} e
 * @returns {boolean}
 */
export function addEvent(trace, e) {
  if (e.seq <= trace.last) {
    return false;
  }
  const at = Date.parse(e.at);
  trace.last = e.seq;
  trace.events.push(e);
  trace.start = Number.isNaN(trace.start) ? at : trace.start;
  trace.end = at;
  switch (e.type) {
    case "agent_spawned": agentOf(trace, e, at); break;
    case "message": wake(trace, e.message?.to, at); break;
    case "model_answered": addAnswer(trace, e, at); break;
    case "tool_call": addCall(trace, e, at); break;
    case "tool_result": endCall(trace, e, at, ""); break;
    case "tool_error": endCall(trace, e, at, "failed"); break;
  }
  return true;
}

/**
 * Drops the oldest events when there are many more than a number. It reports whether it did.
 * @param {Trace} trace
 * @param {number} most
 */
export function trimTrace(trace, most) {
  if (trace.events.length <= 1.2 * most) {
    return false;
  }
  trace.events = trace.events.slice(-most);
  const { seq, at } = trace.events[0];
  trace.start = Date.parse(at);
  trace.spans = trace.spans.filter((s) => s.seq >= seq || Number.isNaN(s.end));
  trace.calls = new Map(trace.spans.flatMap((s) => s.call ? [[s.call, s]] : []));
  return true;
}

/** @param {Trace} trace @param {OrgEvent} e @param {number} at */
function agentOf(trace, e, at) {
  const id = e.agent ?? "";
  let agent = trace.agents.get(id);
  if (!agent) {
    agent = { id, name: e.type === "agent_spawned" && e.name ? e.name : e.role ?? "", role: e.role ?? "", since: at };
    trace.agents.set(id, agent);
  }
  return agent;
}

/** @param {Trace} trace @param {string | undefined} id @param {number} at */
function wake(trace, id, at) {
  const agent = trace.agents.get(id ?? "");
  if (agent && Number.isNaN(agent.since)) {
    agent.since = at;
  }
}

/** @param {Trace} trace @param {OrgEvent} e @param {number} at */
function addAnswer(trace, e, at) {
  const agent = agentOf(trace, e, at);
  const start = Number.isNaN(agent.since) ? at : agent.since;
  trace.spans.push({ kind: "model", seq: e.seq, agent: agent.id, name: e.answer?.model || "model", start, end: at, outcome: "" });
  agent.since = NaN; // until a result or a message wakes it
}

/** @param {Trace} trace @param {OrgEvent} e @param {number} at */
function addCall(trace, e, at) {
  const agent = agentOf(trace, e, at);
  const denied = e.decision === "denied";
  const span = /** @type {Span} */ ({ kind: "tool", seq: e.seq, agent: agent.id, name: e.tool, start: at, end: denied ? at : NaN, outcome: denied ? "denied" : "", call: e.call, code: e.code });
  trace.spans.push(span);
  trace.calls.set(e.call, span);
}

/** @param {Trace} trace @param {OrgEvent} e @param {number} at @param {"" | "failed"} outcome */
function endCall(trace, e, at, outcome) {
  const span = trace.calls.get(e.call);
  if (span && span.outcome !== "denied") {
    span.end = at;
    span.outcome = outcome;
    span.code = e.code;
  }
  const agent = trace.agents.get(e.agent ?? "");
  if (agent) {
    agent.since = at;
  }
}

/**
 * Returns a scale from times to positions between 0 and width, on which idle times of more than
 * 5 % of the whole take little room.
 * @param {Trace} trace
 * @param {number} width
 * @param {number} now the end of spans that run
 * @returns {{at: (time: number) => number, folds: {x: number, ms: number}[]}}
 */
export function timeScale(trace, width, now) {
  const busy = mergeSpans(trace.spans.map((s) => [s.start, Number.isNaN(s.end) ? now : s.end]));
  const start = Math.min(trace.start, busy[0]?.[0] ?? Infinity), end = Math.max(trace.end, busy.at(-1)?.[1] ?? 0, start + 1);
  const idle = /** @type {[number, number][]} */ ([]);
  let at = start;
  for (const [from, to] of [...busy, [end, end]]) {
    if (from - at > 0.05 * (end - start)) {
      idle.push([at, from]);
    }
    at = Math.max(at, to);
  }
  const folded = 28; // width of an idle time
  const shown = Math.max(1, end - start - idle.reduce((sum, [a, b]) => sum + b - a, 0));
  const unit = (width - folded * idle.length) / shown;
  const position = (/** @type {number} */ time) => {
    let x = (time - start) * unit;
    for (const [a, b] of idle) {
      const gone = Math.min(Math.max(time - a, 0), b - a);
      x += gone * (folded / (b - a) - unit);
    }
    return Math.min(width, Math.max(0, x));
  };
  return { at: position, folds: idle.map(([a, b]) => ({ x: position((a + b) / 2), ms: b - a })) };
}

/**
 * @param {[number, number][]} spans
 * @returns {[number, number][]} sorted, without overlaps
 */
function mergeSpans(spans) {
  const merged = /** @type {[number, number][]} */ ([]);
  for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) {
      last[1] = Math.max(last[1], to);
    } else {
      merged.push([from, to]);
    }
  }
  return merged;
}
