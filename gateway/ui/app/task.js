// Screen: the tasks, and one task: what its agents did, when, and what was denied.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { get, list, send } from "./api.js";
import { addDenial, addFailedTurn, faultMarks, loadDenials, loadFailedTurns } from "./denials.js";
import { ask, field } from "./dialog.js";
import { eventFacts } from "./event-facts.js";
import { bodyOf, brief, clock, command, count, duration, excerpt, number } from "./format.js";
import { hasEnded } from "./organization-model.js";
import { commandLine, difference, facts, filterField, idChip, json, mark, oneLine, quiet, statusMark, table, when } from "./parts.js";
import { callerName, personName } from "./people.js";
import { nowSection } from "./now.js";
import { pause } from "./pause.js";
import { placeLink, setParams } from "./place.js";
import { questionsOf } from "./questions.js";
import { addEvent, newTrace, trimTrace } from "./spans.js";
import { waterfall } from "./waterfall.js";
import { addPart, endWriting } from "./writing.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {import("./screen.js").Place} Place */
/** @typedef {import("./spans.js").Span} Span */

const tasksShown = 500;
const eventsShown = 5000; // of one task
const headingMost = 100; // characters of the text of a task in the heading
const linksMost = 12; // in a notice
const saidMost = 100; // entries of the conversation that are drawn at once
const resultMost = 20_000; // characters of a result
const valueMost = 600; // characters of the arguments or the result of a call
const writersMost = 20; // agents whose answers in progress are drawn
const approvalsSearched = 1000; // for those of one task

/** @type {import("./screen.js").Screen} */
export const task = {
  id: "task", title: "Tasks", key: "t", scope: "caller",
  loadKey: (place) => place.id,
  load: (place, signal) => place.id ? loadTask(place.id, signal) : loadTasks(signal),
  async refresh(data, place) {
    Object.assign(data, place.id ? await loadState(place.id) : await loadTasks());
  },
  fold(data, e, place) {
    if (!place.id) {
      if (addDenial(data.denials, e) || addFailedTurn(data.failedTurns, e)) {
        return true;
      }
      return ["task_started", "task_paused", "task_retried", "paused", "resumed", "result"].includes(e.type) ? "reload" : false;
    }
    if (e.task !== data.task.id) {
      return false;
    }
    endWriting(data.writing, e);
    const added = addEvent(data.trace, e);
    data.cut = trimTrace(data.trace, eventsShown) || data.cut;
    return ["result", "task_paused", "task_retried", "agent_spawned", "model_answered", "approval_requested", "approval_decided", "question_asked", "question_answered"].includes(e.type) ? "reload" : added;
  },
  watch: (data) => data.task && !hasEnded(data.task.status) ? data.task.id : "",
  write(data, parts, begin) {
    if (begin) {
      data.writing.clear();
    }
    for (const part of parts) {
      addPart(data.writing, part, data.trace.last);
    }
  },
  heading: (data) => data.task && excerpt(data.task.text, headingMost),
  isEmpty: (data) => data.tasks?.length === 0,
  empty: (_, page) => page.session.operator
    ? { text: "No task was started yet.", command: command("run", "-f", "org.yaml", "Remember the milk") }
    : { text: "You see only tasks that you have started: none yet." },
  tools: (data, place, page) => place.id ? taskTools(data, page) : html`
    ${filterField("Filter tasks", place.params.filter ?? "", (filter) => setParams({ filter }))}
    <a class="button primary" href=${placeLink("start")}>Give a task</a>`,
  render: (data, place, page) => data.tasks ? taskList(data, place, page) : oneTask(data, place, page),
  keydown(e, data, place) {
    if (!data.trace || e.key !== "[" && e.key !== "]") {
      return false;
    }
    return goToDenial(data, place, e.key === "]" ? 1 : -1);
  },
};

/** @param {AbortSignal} [signal] */
async function loadTasks(signal) {
  const [page, denied, failedTurns] = await Promise.all([list("api/v1/tasks", {}, tasksShown, signal), loadDenials(signal), loadFailedTurns(signal)]);
  return { tasks: page.items, more: page.more, ...denied, failedTurns };
}

/** @param {string} id @param {AbortSignal} signal */
async function loadTask(id, signal) {
  const [found, events] = await Promise.all([loadState(id, signal), list("api/v1/events", { task: id }, eventsShown, signal)]);
  const trace = newTrace();
  for (const e of events.items.reverse()) {
    addEvent(trace, e);
  }
  return { ...found, trace, cut: events.more, writing: new Map() };
}

/**
 * Loads a task, its calls that wait for the user's approval, and its questions that wait.
 * @param {string} id
 * @param {AbortSignal} [signal]
 */
async function loadState(id, signal) {
  const [found, waiting, questions] = await Promise.all([
    get("api/v1/tasks/" + encodeURIComponent(id), {}, signal), list("api/v1/approvals", {}, approvalsSearched, signal), questionsOf(id, signal),
  ]);
  return { task: found, questions, waiting: waiting.items.filter((/** @type {any} */ a) => a.task === id) };
}

/** @param {any} data @param {Place} place @param {Page} page */
function taskList(data, place, page) {
  const words = (place.params.filter ?? "").toLowerCase();
  const shown = data.tasks.filter((/** @type {any} */ t) => `${t.text} ${t.status} ${callerName(t.caller)} ${t.id}`.toLowerCase().includes(words));
  return html`${table("Tasks, newest first", ["Task", "Status", "Caller", "Started", "Took"], shown.map((/** @type {any} */ t) => ({
    href: placeLink("task", t.id), title: t.error?.message ?? t.reason?.message,
    cells: [oneLine(t.text, 100), taskStatus(t, data.denials.get(t.id)?.size, data.failedTurns.get(t.id)?.size), callerName(t.caller), when(t.createdAt, page.now), took(t, page.now)],
  })))}${data.more ? html`<p class="quiet">The ${tasksShown} newest tasks are shown.</p>` : nothing}
  ${data.denialsCut ? html`<p class="quiet">Denied calls and failed turns are counted in the newest part of the record only.</p>` : nothing}`;
}

/** @param {any} t @param {number | undefined} denied @param {number | undefined} failed turns */
function taskStatus(t, denied, failed) {
  return html`${statusMark(t.status)} ${faultMarks(failed, denied)}`;
}

/** @param {any} t @param {number} now */
function took(t, now) {
  return duration((t.endedAt ? Date.parse(t.endedAt) : now) - Date.parse(t.createdAt));
}

/** @param {any} data @param {Page} page */
function taskTools(data, page) {
  const { task: t } = data;
  const held = t.status === "paused" && t.reason?.code === "paused"; // by a person
  const retry = !held && ["paused", "failed", "cancelled"].includes(t.status);
  return html`<a class="button" href=${placeLink("task")}>All tasks</a>
    <a class="button" href=${placeLink("record", "", { task: t.id })}>Its record</a>
    ${retry ? html`<button type="button" @click=${() => retryTask(t, page)}>Retry</button>` : nothing}
    ${held ? html`<button type="button" @click=${() => pause({ task: t.id }, "resume", "the task", page)}>Resume</button>` : nothing}
    ${held || hasEnded(t.status) ? nothing : html`<button type="button" @click=${() => pause({ task: t.id }, "pause", "the task", page)}>Pause</button>`}
    ${hasEnded(t.status) ? nothing : html`<button type="button" class="danger" @click=${() => cancelTask(t, page)}>Cancel the task</button>`}`;
}

/** @param {any} t @param {Page} page */
async function cancelTask(t, page) {
  await ask({
    title: "Cancel the task", confirm: "Cancel the task", danger: true, body: field("Reason (optional)", "reason"),
    command: ({ reason }) => command("task", "cancel", t.id, ...(reason ? ["--reason", reason] : [])),
    run: ({ reason }) => send("POST", `api/v1/tasks/${encodeURIComponent(t.id)}/cancel` + (reason ? `?reason=${encodeURIComponent(reason)}` : "")),
  });
  page.reload();
}

/** @param {any} t @param {Page} page */
async function retryTask(t, page) {
  await ask({
    title: "Let the task go on", confirm: "Retry", body: field("Tokens that it may use in addition", "tokens", { type: "number", value: "0" }),
    command: ({ tokens }) => command("task", "retry", t.id, ...(Number(tokens) ? ["--tokens", tokens] : [])),
    run: ({ tokens }) => send("POST", `api/v1/tasks/${encodeURIComponent(t.id)}/retry`, { tokens: Number(tokens) || 0 }),
  });
  page.reload();
}

/** @param {any} data @param {Place} place @param {Page} page */
function oneTask(data, place, page) {
  const { task: t, trace } = data;
  const denials = trace.spans.filter((/** @type {Span} */ s) => s.outcome === "denied");
  const failed = trace.spans.filter((/** @type {Span} */ s) => s.kind === "turn");
  const linkTo = (/** @type {Span} */ s, /** @type {string | undefined} */ what) => ({ href: placeLink("task", t.id, { ...place.params, event: String(s.seq) }), text: `${trace.agents.get(s.agent)?.name} ${what}` });
  return html`${t.text.length > headingMost ? html`<p class="lead">${t.text}</p>` : nothing}${hasEnded(t.status) ? outcome(t) : nowSection(trace, data.writing, page.now, usedUntilNow(t, page.now))}
    ${linkNotice(mark("bad", count(failed.length, "failed turn")), failed.map((/** @type {Span} */ s) => linkTo(s, s.code)))}
    ${linkNotice(mark("bad", count(denials.length, "denied call")), denials.map((/** @type {Span} */ s) => linkTo(s, s.name)), html`<span class="quiet fixed">(keys [ and ])</span>`)}
    ${linkNotice(mark("wait", `${count(data.waiting.length, "call")} waiting for approval`), data.waiting.map((/** @type {any} */ a) => ({ href: placeLink("approvals", a.id), text: `${a.role} ${a.tool}` })))}
    ${data.questions.map((/** @type {any} */ q) => html`<div class="notice">${mark("wait", `${q.tool} waits for an answer of the person who started the task:`)} <span class="text">${excerpt(q.message, 400)}</span></div>`)}
    ${data.cut ? html`<p class="quiet">The last ${number(eventsShown)} events are shown.</p>` : nothing}
    <h2>What happened when</h2>
    ${waterfall(data, place, page)}
    <div class="split"><div>
      <h2>What was said and called</h2>
      ${hasEnded(t.status) ? nothing : html`<p><button type="button" @click=${() => goToLatest(page)}>Go to the latest</button></p>`}
      ${conversation(data, place)}
    </div><aside class="panel" aria-label="The task">${chosenEvent(data, place, page)}${summary(t, page)}</aside></div>`;
}

/**
 * What a task has yielded, or why it has failed.
 * @param {any} t
 */
function outcome(t) {
  if (t.error) {
    return html`<section class="outcome"><h2>Error</h2><p class="text">${mark("bad", t.error.message)} <code>${t.error.code}</code></p></section>`;
  }
  const { text, rest } = bodyOf(t.result);
  if (isAgentError(t.result)) {
    return html`<section class="outcome"><h2>Result</h2><p class="text">${mark("bad", "The result is an error of an agent:")} ${excerpt(brief(t.result.message, resultMost), resultMost)} <code>${brief(t.result.errorType, headingMost)}</code></p>${json(rest)}</section>`;
  }
  return t.result === undefined ? nothing : html`<section class="outcome"><h2>Result</h2>
    ${text === undefined ? nothing : html`<p class="text" tabindex=${text.length > headingMost ? 0 : nothing}>${text.slice(0, resultMost)}</p>`}${rest === undefined ? nothing : json(rest)}</section>`;
}

/**
 * Reports whether a result is the message that tells an agent of the failed turn of another one.
 * @param {any} result
 */
function isAgentError(result) {
  return result?.kind === "error" && typeof result.errorType === "string";
}

/**
 * A notice with links, of which only some are shown; nothing without links.
 * @param {any} head
 * @param {{href: string, text: string}[]} links
 * @param {any} [hint]
 */
function linkNotice(head, links, hint = nothing) {
  return links.length === 0 ? nothing : html`<div class="notice">${head}: ${links.slice(0, linksMost).map(({ href, text }, i) => html`${i ? ", " : nothing}<a href=${href}>${text}</a>`)}${links.length > linksMost ? ", …" : nothing} ${hint}</div>`;
}

/** @param {any} t @param {Page} page */
function summary(t, page) {
  const usage = t.usage ?? {};
  return html`${facts([
    ["Status", html`${statusMark(t.status)}${isAgentError(t.result) ? html` ${mark("bad", "the result is an error")}` : nothing}`], ["Caller", callerName(t.caller)], ["Restricted to", t.groups?.[0] === "*" ? undefined : t.groups?.join(", ")],
    ["Started", when(t.createdAt, page.now)], [hasEnded(t.status) ? "Took" : "Running for", took(t, page.now)],
    ["Agents", t.agents?.length], ["Calls", t.calls && html`${number(t.calls.total)}${t.calls.denied ? html`, ${mark("bad", `${t.calls.denied} denied`)}` : nothing}`],
    ["Tokens", tokensOf(usage, t.limits)], ["Cost", costOf(usage)],
    ["Paused", t.reason && html`${t.reason.message} <code>${t.reason.code}</code>`],
    ["Id", idChip(t.id)],
  ])}
  ${commandLine(command("task", "show", t.id))}`;
}

/**
 * What a running task has used until now.
 * @param {any} t
 * @param {number} now
 */
function usedUntilNow(t, now) {
  const tokens = tokensOf(t.usage ?? {}, t.limits), cost = costOf(t.usage);
  const parts = [t.calls && count(t.calls.total, "call"), tokens && `${tokens} tokens`, cost && `cost ${cost}`];
  return `Until now, without answers in progress: ${[took(t, now), ...parts].filter(Boolean).join(" · ")}`;
}

/** @param {any} usage */
function costOf(usage) {
  return usage?.costNano ? `${(usage.costNano / 1e9).toFixed(4)} in the currency of your prices` : undefined;
}

/** @param {any} usage @param {any} limits */
function tokensOf(usage, limits) {
  const used = (usage.input ?? 0) + (usage.output ?? 0);
  return used || limits?.tokens ? `${number(used)}${limits?.tokens ? ` of at most ${number(limits.tokens)}` : ""}` : undefined;
}

/** @param {any} data @param {Place} place @param {Page} page */
function chosenEvent(data, place, page) {
  const seq = Number(place.params.event);
  const e = data.trace.events.find((/** @type {any} */ one) => one.seq === seq);
  if (!e) {
    data.shown = 0;
    return nothing;
  }
  if (data.shown !== seq) {
    data.shown = seq;
    page.afterDraw(() => showChosen(seq));
  }
  const call = e.call && data.trace.events.filter((/** @type {any} */ one) => one.call === e.call && one !== e);
  return html`<h2 id="chosen-event">Event ${e.seq}</h2>
    ${eventFacts(e, data.trace.agents.get(e.agent)?.name, page.session.operator, askedArguments(data.trace.events, [e]).get(e.call))}
    ${call?.length ? html`<details><summary>${count(call.length, "other event")} of the same call</summary>${call.map((/** @type {any} */ one) => json(one))}</details>` : nothing}
    <p><a href=${placeLink("task", place.id, { ...place.params, event: "" })}>Close the event</a> <kbd>Esc</kbd></p>
    <hr><h2>The task</h2>`;
}

/**
 * Scrolls to an event in the conversation and in the panel.
 * @param {number} seq
 */
function showChosen(seq) {
  for (const id of ["event-" + seq, "chosen-event"]) {
    document.getElementById(id)?.scrollIntoView({ block: "nearest" });
  }
}

/**
 * Scrolls to the last entry of the conversation, or to what is being written. An event that is chosen hides them.
 * @param {Page} page
 */
function goToLatest(page) {
  setParams({ event: "" });
  page.afterDraw(() => [...document.querySelectorAll(".talk > article")].at(-1)?.scrollIntoView({ block: "end" }));
}

/** @param {any} data @param {Place} place @param {number} step */
function goToDenial(data, place, step) {
  const seqs = data.trace.spans.filter((/** @type {Span} */ s) => s.outcome === "denied").map((/** @type {Span} */ s) => s.seq);
  const now = Number(place.params.event) || 0;
  const next = step > 0 ? seqs.find((/** @type {number} */ s) => s > now) ?? seqs[0] : seqs.findLast((/** @type {number} */ s) => s < (now || Infinity)) ?? seqs.at(-1);
  if (next === undefined) {
    return false;
  }
  setParams({ event: String(next) });
  return true;
}

/** What of the events belongs into a conversation. */
const told = new Set(["message", "model_answered", "tool_call", "tool_result", "tool_error", "agent_spawned", "agent_terminated", "error", "result", "task_paused", "task_retried", "question_asked", "question_answered", "approval_requested", "approval_decided", "state_transition"]);

/** @param {any} data @param {Place} place */
function conversation(data, place) {
  const { trace } = data;
  const entries = trace.events.filter((/** @type {any} */ e) => told.has(e.type) && (e.type !== "tool_error" || trace.calls.get(e.call)?.outcome !== "denied"));
  const at = entries.findIndex((/** @type {any} */ e) => String(e.seq) === place.params.event);
  const from = Math.max(0, (at < 0 ? entries.length : Math.min(entries.length, at + saidMost / 2)) - saidMost);
  const shown = entries.slice(from, from + saidMost), repeated = repetitions(shown), asked = askedArguments(trace.events, shown);
  return html`${others(from, "earlier", entries[from], place)}
    <div class="talk">${repeat(shown, (/** @type {any} */ e) => e.seq, (/** @type {any} */ e) => entry(e, data, place, repeated.has(e.seq), asked))}</div>
    ${others(entries.length - from - shown.length, "later", shown.at(-1), place)}
    ${writers(data)}`;
}

/** The answers that models are writing. */
function writers(/** @type {any} */ data) {
  const drafts = [...data.writing].filter(([, d]) => (d.text || d.note) && !d.recorded);
  return html`<div class="talk writers">${repeat(drafts.slice(0, writersMost), ([agent]) => agent, ([agent, d]) => html`<article class="writing">
      <header><strong>${data.trace.agents.get(agent)?.name ?? ""}</strong> ${d.note ? mark("wait", `waits: ${d.note}`) : mark("work", "is writing")}</header>
      <p class="text">${d.cut ? "… " : ""}${d.text}</p></article>`)}</div>
    ${drafts.length > writersMost ? html`<p class="quiet">${count(drafts.length - writersMost, "other agent")} write, too.</p>` : nothing}`;
}

/**
 * A link to entries that are not shown. It chooses the entry beside them.
 * @param {number} n
 * @param {string} which
 * @param {any} beside
 * @param {Place} place
 */
function others(n, which, beside, place) {
  return n > 0 ? html`<p><a href=${placeLink("task", place.id, { ...place.params, event: String(beside.seq) })}>Show ${count(n, which + " entry").replace("entrys", "entries")}</a></p>` : nothing;
}

/**
 * Returns the events that say again what the agent has answered before: that it sends the answer, or
 * that it is the result.
 * @param {any[]} shown
 * @returns {Set<number>} their numbers
 */
function repetitions(shown) {
  const repeated = new Set();
  let last = { agent: "", said: "" };
  for (const e of shown) {
    const { text, rest } = saidIn(e), said = text ?? brief(rest, 4000), agent = e.message?.from ?? e.agent;
    if (said && said === last.said && (e.type === "result" || e.type === "message" && agent === last.agent)) {
      repeated.add(e.seq);
    } else if (said) {
      last = { agent, said };
    }
  }
  return repeated;
}

/**
 * Returns what is said in an answer, a message or a result. Other events say nothing.
 * @param {any} e
 * @returns {{text: string | undefined, rest: any}}
 */
function saidIn(e) {
  switch (e.type) {
    case "model_answered": return bodyOf(e.answer?.text ?? "");
    case "message": return bodyOf(e.message.payload);
    case "result": return bodyOf(e.result ?? e.error?.message ?? e.error);
  }
  return bodyOf("");
}

/**
 * Returns the arguments of the denied calls of agents. The answers of their models have them.
 * @param {any[]} events
 * @param {any[]} shown
 * @returns {Map<string, any>} by call
 */
function askedArguments(events, shown) {
  const denied = new Set(shown.filter((e) => e.decision === "denied").map((e) => e.call));
  const calls = denied.size === 0 ? [] : events.flatMap((e) => e.answer?.calls ?? []);
  return new Map(calls.filter((c) => denied.has(c.id)).map((c) => [c.id, c.args]));
}

/** @param {any} e @param {any} data @param {Place} place @param {boolean} isRepeated @param {Map<string, any>} asked */
function entry(e, data, place, isRepeated, asked) {
  const { trace, task: t } = data;
  const agent = trace.agents.get(e.agent)?.name ?? e.role ?? "";
  const denied = e.type === "tool_call" && e.decision === "denied";
  const chosen = String(e.seq) === place.params.event;
  return html`<article id="event-${e.seq}" class="${denied ? "denied" : ""} ${chosen ? "chosen" : ""}">
    <header><a href=${placeLink("task", t.id, { ...place.params, event: String(e.seq) })}>${clock(e.at)}</a>${entryHead(e, agent, data)}</header>
    ${isRepeated ? nothing : entryBody(e, trace, asked)}</article>`;
}

/** @param {any} e @param {string} agent @param {any} data */
function entryHead(e, agent, data) {
  const name = (/** @type {string} */ id) => data.trace.agents.get(id)?.name ?? id;
  switch (e.type) {
    case "message": return html`<strong>${e.message.fromName || name(e.message.from)}</strong> to <strong>${name(e.message.to)}</strong>`;
    case "model_answered": return html`<strong>${agent}</strong> ${quiet(e.answer?.calls?.length ? `answered with ${count(e.answer.calls.length, "call")}` : "answered")}`;
    case "tool_call": return e.decision === "denied"
      ? html`<strong>${agent}</strong> ${mark("bad", "denied")} <code>${e.tool}</code> <code>${e.code}</code>`
      : html`<strong>${agent}</strong> ${mark("good", "calls")} <code>${e.tool}</code>`;
    case "tool_result": return html`<strong>${e.tool}</strong> ${quiet("returned to")} ${agent}`;
    case "tool_error": return html`<strong>${agent}</strong> ${mark("wait", "failed")} <code>${e.tool}</code> <code>${e.code}</code>`;
    case "agent_spawned": return html`<strong>${agent}</strong> ${quiet("was spawned in role")} ${e.role}`;
    case "agent_terminated": return html`<strong>${agent}</strong> ${quiet("was terminated: " + (e.reason || "no reason"))}`;
    case "state_transition": return html`<strong>${agent}</strong> ${quiet(`goes from state ${e.from} to`)} ${e.to}`;
    case "result": return html`<strong>The task ended</strong> ${statusMark(e.status)}`;
    case "error": return html`<strong>${agent}</strong> ${mark("bad", "turn failed")} <code>${e.code}</code>`;
    case "paused": return html`<strong>Paused</strong> ${mark("wait", e.reason || "no reason")} ${quiet("by " + callerName(e.by))}`;
    case "resumed": return html`<strong>Resumed</strong> ${quiet("by " + callerName(e.by))}`;
    case "task_paused": return html`<strong>The task paused</strong> ${mark("wait", e.reason)} <code>${e.code}</code>`;
    case "task_retried": return html`<strong>The task goes on</strong> ${quiet("by " + callerName(e.by))}`;
    case "approval_requested": return html`<strong>${agent}</strong> ${mark("wait", "waits for approval of")} <code>${e.tool}</code>`;
    case "approval_decided": return html`<span><strong>${e.by ? personName(e.by) : "rolecall"}</strong>${e.as ? ` as ${e.as}` : nothing}</span> ${mark(e.outcome === "denied" || e.outcome === "expired" ? "bad" : "good", e.outcome)} <code>${e.tool}</code>
      ${e.waited ? quiet(`after ${duration(e.waited / 1e6)}`) : nothing} ${quiet(e.reason ?? "")}`;
    case "question_asked": return html`<strong>${e.tool}</strong> ${mark("wait", "asks")}`;
  }
  return html`${quiet(e.type)}`;
}

/** @param {{text: string | undefined, rest: any}} said */
function saidBody({ text, rest }) {
  return html`${text ? html`<p class="text">${text.slice(0, resultMost)}</p>` : nothing}${rest === undefined || rest === null ? nothing : html`<p class="text"><code>${brief(rest, 4000)}</code></p>`}`;
}

/** @param {any} e @param {any} trace @param {Map<string, any>} asked */
function entryBody(e, trace, asked) {
  switch (e.type) {
    case "message": case "model_answered": case "result": return saidBody(saidIn(e));
    case "tool_call": return html`${e.decision === "denied" ? html`<p class="text">${e.reason}</p>` : nothing}${codeLine(e.args ?? asked.get(e.call) ?? e.argsStart)}`;
    case "tool_result": case "tool_error": return codeLine(e.result);
    case "approval_decided": return e.args ? argumentChange(e, trace) : nothing;
    case "error": return html`<p class="text">${e.message}</p>`;
    case "question_asked": case "question_answered": return html`<p class="text">${e.message ?? e.action}</p>`;
  }
  return nothing;
}

/**
 * A JSON value in one line.
 * @param {any} value
 */
function codeLine(value) {
  return value === undefined ? nothing : html`<p class="text"><code>${brief(value, valueMost)}</code></p>`;
}

/**
 * What an approver has changed in the arguments of a call.
 * @param {any} e the decision
 * @param {any} trace
 */
function argumentChange(e, trace) {
  const request = trace.events.find((/** @type {any} */ one) => one.type === "approval_requested" && one.approval === e.approval);
  return request?.args ? difference(JSON.stringify(request.args, null, 2), JSON.stringify(e.args, null, 2)) : json(e.args);
}
