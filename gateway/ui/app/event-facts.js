// One event of the record in words, above its JSON.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { bodyOf, brief, excerpt, preciseTime } from "./format.js";
import { denialText, grantHint, rightsVersion } from "./grant-hint.js";
import { facts, json, mark, statusMark } from "./parts.js";
import { callerName } from "./people.js";
import { placeLink } from "./place.js";

const textMost = 600; // characters of what an event says

/**
 * Says what an event is, and shows its JSON.
 * @param {any} e
 * @param {any} agent a template that names its agent
 * @param {boolean} operator operators may open roles
 * @param {any} [args] of the call, if the event has none
 */
export function eventFacts(e, agent, operator, args = e.args ?? e.argsStart) {
  return html`${facts([["What", e.type], ["Agent", agent], ["Role", e.role], ["Caller", e.caller && callerName(e.caller)], ["By", e.by && callerName(e.by)],
      ["Tool", e.tool && html`<code>${e.tool}</code>`], ["Arguments", args && html`<code>${brief(args, textMost)}</code>`], ["Decision", e.decision && (e.decision === "denied" ? mark("bad", "denied") : mark("good", "allowed"))],
      ["Outcome", outcomeOf(e)], ["Code", e.code && html`<code>${e.code}</code>`], ["Reason", e.reason], ["Text", excerpt(textOf(e), textMost)],
      ["Rule", denialText(e.rule, e.role)], ["Group", e.group], ["To grant it", e.rule === "not granted" && e.group && e.role ? grantHint(e.role, e.group, operator) : undefined],
      [rightsVersion, e.epoch], ["At", preciseTime(e.at) + " UTC"]])}
    ${e.tool && e.type === "tool_call" && e.role ? html`<p><a href=${placeLink("access", "", { role: e.role, tool: e.tool })}>May role ${e.role} call ${e.tool} now?</a></p>` : nothing}
    <h3>Event</h3>${json(e)}`;
}

/** @param {any} e */
function outcomeOf(e) {
  const outcome = e.outcome ?? e.status ?? e.action;
  return outcome && statusMark(outcome);
}

/**
 * What an event says in words, "" for nothing.
 * @param {any} e
 */
function textOf(e) {
  return e.text ?? (typeof e.message === "string" ? e.message : bodyOf(e.message?.payload).text) ?? e.answer?.text ?? (typeof e.error === "string" ? e.error : e.error?.message) ?? "";
}
