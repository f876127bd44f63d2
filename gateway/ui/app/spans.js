// What the agents of a task did, as spans of time. Pure: without a browser.

/** @typedef {import("./stream.js").OrgEvent} OrgEvent */
/**
 * @typedef {object} Span
 * @property {"model" | "tool" | "wait" | "turn"} kind a turn is one that failed
 * @property {number} seq of the event that began it, or of the answer of a model
 * @property {string} agent
 * @property {string} name the tool, or the model; "" of a turn
 * @property {"approval" | "answer"} [awaits] what the call of a tool waits for
 * @property {number} start milliseconds since 1970
 * @property {number} end NaN while it runs
 * @property {"" | "denied" | "failed"} outcome "" is a success, or not known yet
 * @property {string} [call]
 * @property {Span[]} [awaited] the waits for answers while a call runs
 * @property {string} [code] of a denial or a failure; how a wait has ended
 */
/**
 * @typedef {object} Trace
 * @property {Map<string, {id: string, name: string, role: string, since: number, woken: number, said: string}>} agents in the order in which they were spawned; since is when their model was asked, woken the event that made them ask, said the text of its last answer that has one
 * @property {Span[]} spans
 * @property {Map<string, Span>} calls those of tools by call
 * @property {Map<string, Span>} waits those that go on, by the id of the request or question
 * @property {OrgEvent[]} events oldest first
 * @property {number} last sequence number of the last event
 * @property {number} start
 * @property {number} end
 */

/** @returns {Trace} */
export function newTrace() {
  return { agents: new Map(), spans: [], calls: new Map(), waits: new Map(), events: [], last: 0, start: NaN, end: NaN };
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
    case "message": wake(trace, e, at); break;
    case "model_answered": addAnswer(trace, e, at); break;
    case "error": addFailedTurn(trace, e, at); break;
    case "tool_call": addCall(trace, e, at); break;
    case "tool_result": endCall(trace, e, at, ""); break;
    case "tool_error": endCall(trace, e, at, "failed"); break;
    case "approval_requested": addWait(trace, e, at, "approval", e.approval); break;
    case "question_asked": addWait(trace, e, at, "answer", e.question); break;
    case "approval_decided": e.outcome !== "vote" && endWait(trace, e.approval, at, e.outcome); break;
    case "question_answered": endWait(trace, e.question, at, e.action); break;
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
  trace.calls = new Map(trace.spans.flatMap((s) => s.kind === "tool" && s.call ? [[s.call, s]] : []));
  return true;
}

/** @param {Trace} trace @param {OrgEvent} e @param {number} at */
function agentOf(trace, e, at) {
  const id = e.agent ?? "";
  let agent = trace.agents.get(id);
  if (!agent) {
    agent = { id, name: e.type === "agent_spawned" && e.name ? e.name : e.role ?? "", role: e.role ?? "", since: at, woken: e.seq, said: "" };
    trace.agents.set(id, agent);
  }
  return agent;
}

/** @param {Trace} trace @param {OrgEvent} e @param {number} at */
function wake(trace, e, at) {
  const agent = trace.agents.get(e.message?.to ?? "");
  if (agent && Number.isNaN(agent.since)) {
    Object.assign(agent, { since: at, woken: e.seq });
  }
}

/**
 * Returns the answers that models are asked for now, as spans.
 * @param {Trace} trace
 * @returns {Span[]}
 */
export function openAnswers(trace) {
  const busy = new Set(trace.spans.filter((s) => Number.isNaN(s.end)).map((s) => s.agent));
  return [...trace.agents.values()].filter((a) => !Number.isNaN(a.since) && !busy.has(a.id))
    .map((a) => ({ kind: "model", seq: a.woken, agent: a.id, name: "its model", start: a.since, end: NaN, outcome: "" }));
}

/** @param {Trace} trace @param {OrgEvent} e @param {number} at */
function addAnswer(trace, e, at) {
  const agent = agentOf(trace, e, at);
  const start = Number.isNaN(agent.since) ? at : agent.since;
  trace.spans.push({ kind: "model", seq: e.seq, agent: agent.id, name: e.answer?.model || "model", start, end: at, outcome: "" });
  agent.said = e.answer?.text || agent.said;
  agent.since = NaN; // until a result or a message wakes it
}

/** @param {Trace} trace @param {OrgEvent} e @param {number} at */
function addFailedTurn(trace, e, at) {
  if (e.agent) {
    const agent = agentOf(trace, e, at);
    trace.spans.push({ kind: "turn", seq: e.seq, agent: agent.id, name: "", start: Number.isNaN(agent.since) ? at : agent.since, end: at, outcome: "failed", code: e.code });
    agent.since = NaN;
  }
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
    Object.assign(agent, { since: at, woken: e.seq });
  }
}

/** @param {Trace} trace @param {OrgEvent} e @param {number} at @param {"approval" | "answer"} awaits @param {string} id */
function addWait(trace, e, at, awaits, id) {
  const span = /** @type {Span} */ ({ kind: "wait", seq: e.seq, agent: agentOf(trace, e, at).id, name: e.tool, awaits, start: at, end: NaN, outcome: "", call: e.call });
  trace.spans.push(span);
  trace.waits.set(id, span);
  const call = trace.calls.get(e.call);
  if (call) {
    call.awaited = [...call.awaited ?? [], span];
  }
}

/** @param {Trace} trace @param {string} id @param {number} at @param {string} code */
function endWait(trace, id, at, code) {
  const span = trace.waits.get(id);
  if (span) {
    Object.assign(span, { end: at, code });
    trace.waits.delete(id);
  }
}

const foldLeast = 100; // milliseconds that are left out, at least
const foldMost = 128; // width of a time that is left out, with its text
const tickSpace = 100; // between two ticks, at least

/**
 * @typedef {object} Scale
 * @property {(time: number) => number} at the position of a time
 * @property {{x: number, width: number, ms: number}[]} folds times that are left out
 * @property {{x: number, ms: number}[]} ticks with the time since the start
 */

/**
 * Returns a scale from times to positions between 0 and width. Times of more than 5 % of the whole
 * in which agents only waited take little room.
 * @param {Trace} trace
 * @param {Span[]} spans those of trace, and others that go on
 * @param {number} width
 * @param {number} now the end of spans that go on
 * @returns {Scale}
 */
export function timeScale(trace, spans, width, now) {
  const busy = mergeSpans(spans.flatMap((s) => busyParts(s, now)));
  const start = Math.min(trace.start, busy[0]?.[0] ?? Infinity);
  const end = Math.max(trace.end, busy.at(-1)?.[1] ?? 0, trace.waits.size ? now : 0, start + 1);
  const idle = idleTimes([...busy, [end, end]], start, Math.max(foldLeast, 0.05 * (end - start)));
  const folded = Math.min(foldMost, 0.5 * width / idle.length);
  const shown = Math.max(1, end - start - idle.reduce((sum, [a, b]) => sum + b - a, 0));
  const unit = (width - folded * idle.length) / shown;
  const at = (/** @type {number} */ time) => {
    let x = (time - start) * unit;
    for (const [a, b] of idle) {
      const gone = Math.min(Math.max(time - a, 0), b - a);
      x += gone * (folded / (b - a) - unit);
    }
    return Math.min(width, Math.max(0, x));
  };
  const folds = idle.map(([a, b]) => ({ x: at(a), width: folded, ms: b - a }));
  return { at, folds, ticks: ticksOf(start, end, idle, roundTime(tickSpace / unit), at) };
}

/**
 * Returns when a span was at work: a call is not while it waits for an answer.
 * @param {Span} span
 * @param {number} now
 * @returns {[number, number][]}
 */
function busyParts(span, now) {
  const end = Number.isNaN(span.end) ? now : span.end;
  if (span.kind === "wait") {
    return [];
  }
  const parts = /** @type {[number, number][]} */ ([]);
  let at = span.start;
  for (const wait of span.awaited ?? []) {
    parts.push([at, wait.start]);
    at = Number.isNaN(wait.end) ? end : wait.end;
  }
  return [...parts, [at, Math.max(at, end)]];
}

/**
 * @param {[number, number][]} busy sorted
 * @param {number} start
 * @param {number} least
 * @returns {[number, number][]} the times between them that are longer than least
 */
function idleTimes(busy, start, least) {
  const idle = /** @type {[number, number][]} */ ([]);
  let at = start;
  for (const [from, to] of busy) {
    if (from - at > least) {
      idle.push([at, from]);
    }
    at = Math.max(at, to);
  }
  return idle;
}

/**
 * Returns the ticks of the times that are shown. The first of each part is where it begins.
 * @param {number} start
 * @param {number} end
 * @param {[number, number][]} idle
 * @param {number} step milliseconds between two ticks
 * @param {(time: number) => number} at
 */
function ticksOf(start, end, idle, step, at) {
  const ticks = /** @type {{x: number, ms: number}[]} */ ([]);
  const add = (/** @type {number} */ time) => {
    const x = at(time);
    if (x - (ticks.at(-1)?.x ?? -Infinity) >= tickSpace) {
      ticks.push({ x, ms: time - start });
    }
  };
  let from = start;
  for (const [a, b] of [...idle, [end, end]]) {
    if (a > from) {
      add(from);
      for (let time = start + step * Math.ceil((from - start) / step); time <= a; time += step) {
        add(time);
      }
    }
    from = b;
  }
  return ticks;
}

/**
 * Returns a round number of milliseconds that is at least as long as another.
 * @param {number} ms
 */
function roundTime(ms) {
  const units = [1, 1000, 60_000, 3_600_000, 86_400_000];
  const unit = units.findLast((u) => u <= ms) ?? 1;
  const steps = unit === 1 ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] : [1, 2, 5, 10, 15, 30, 60];
  return unit * (steps.find((s) => s * unit >= ms) ?? Math.ceil(ms / unit));
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
