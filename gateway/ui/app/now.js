// What the agents of a running task do now.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { count, duration, excerpt } from "./format.js";
import { mark, quiet } from "./parts.js";

/** @typedef {import("./spans.js").Span} Span */
/** @typedef {import("./spans.js").Trace} Trace */

const agentsMost = 8, toolsMost = 8;
const writtenMost = 160; // characters of an answer in progress, the last ones

/**
 * Lists the agents that do something, or wait for people.
 * @param {Trace} trace
 * @param {import("./writing.js").Writing} writing
 * @param {number} now
 * @param {any} usage what the task has used until now, in words
 */
export function nowSection(trace, writing, now, usage) {
  const open = new Map(trace.spans.filter((s) => Number.isNaN(s.end)).map((s) => [s.agent, s]));
  const busy = [...trace.agents.values()].map((a) => ({ name: a.name, said: a.said, what: activity(open.get(a.id), writing.get(a.id), a.since, now) })).filter(({ what }) => what);
  return html`<section class="outcome"><h2>Now</h2><ul class="plain">
    ${busy.slice(0, agentsMost).map(({ name, said, what }) => html`<li><strong>${name}</strong> ${what}${said ? html`<div class="quiet">Its last answer: <span class="text">“${excerpt(said, writtenMost)}”</span></div>` : nothing}</li>`)}
    ${busy.length === 0 ? html`<li>${quiet("All agents wait for messages.")}</li>` : nothing}
    ${busy.length > agentsMost ? html`<li>${quiet(`and ${count(busy.length - agentsMost, "other agent")}`)}</li>` : nothing}</ul>
    ${doneCalls(trace)}
    <p class="quiet">${usage}</p></section>`;
}

/**
 * The calls that have ended without an error, by tool.
 * @param {Trace} trace
 */
function doneCalls(trace) {
  const done = new Map();
  for (const s of trace.spans) {
    if (s.kind === "tool" && !s.outcome && !Number.isNaN(s.end)) {
      done.set(s.name, (done.get(s.name) ?? 0) + 1);
    }
  }
  const list = [...done].sort(([, a], [, b]) => b - a), more = list.length - toolsMost;
  return list.length === 0 ? nothing : html`<p>Done: ${list.slice(0, toolsMost).map(([tool, n], i) => html`${i ? ", " : nothing}${n} × <code>${tool}</code>`)}${more > 0 ? ` and calls of ${count(more, "other tool")}` : nothing}</p>`;
}

/**
 * Returns what one agent does; undefined if it waits for a message.
 * @param {Span | undefined} span that has not ended
 * @param {import("./writing.js").Draft | undefined} draft
 * @param {number} since when its model was asked
 * @param {number} now
 */
function activity(span, draft, since, now) {
  if (span) {
    const what = span.kind === "wait" ? mark("wait", span.awaits === "approval" ? "waits for approval of" : "waits for an answer to") : mark("work", "calls");
    return html`${what} <code>${span.name}</code> ${quiet(`for ${duration(now - span.start)}`)}`;
  }
  if (draft?.text && !draft.recorded) {
    return html`${mark("work", "is writing")} <span class="text">“${draft.text.length > writtenMost ? "… " : ""}${excerpt(draft.text.slice(-writtenMost), writtenMost)}…”</span>`;
  }
  return Number.isNaN(since) ? undefined : html`${mark("work", "asks its model")} ${quiet(`for ${duration(now - since)}`)}`;
}
