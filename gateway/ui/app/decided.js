// The calls that were decided last, with their outcomes.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { get } from "./api.js";
import { excerpt } from "./format.js";
import { facts, idChip, mark, quiet, table, when } from "./parts.js";
import { personName } from "./people.js";
import { currentPlace, placeLink } from "./place.js";

/** @typedef {import("./screen.js").Page} Page */

const shownMost = 20;
const textMost = 100; // characters of the text of a task
const lookAgainAfter = 3000; // milliseconds, while a call runs
const lookAgainFor = 600_000; // after the decision

/** @type {number | undefined} */
let timer;

/**
 * Loads the calls that were decided last. While one of them runs, the screen is loaded again.
 * @param {AbortSignal} signal
 * @param {Page} page
 * @returns {Promise<any[]>}
 */
export async function loadDecided(signal, page) {
  const { approvals } = await get("api/v1/decided-approvals", {}, signal).catch(() => ({ approvals: [] })); // the calls that wait are shown in any case
  if (approvals.some((/** @type {any} */ d) => goesOn(d, page.now))) {
    timer ??= setTimeout(() => lookAgain(page), lookAgainAfter);
  }
  return approvals;
}

/** @param {any} d @param {number} now */
function goesOn(d, now) {
  return (d.status === "approved" || d.status === "running") && now - Date.parse(d.at) < lookAgainFor;
}

/** @param {Page} page */
function lookAgain(page) {
  timer = undefined;
  if (currentPlace().screen === "approvals" && page.session) {
    page.reload();
  }
}

/** @param {any[]} list @param {Page} page */
export function decidedList(list, page) {
  return list.length === 0 ? nothing : html`<section class="decided" aria-label="Decided"><h2>Decided</h2>
    ${table("Decided calls, the newest first", ["Call", "Outcome", "Decided", "Task"], list.slice(0, shownMost).map((d) => ({
    key: d.id, cells: [callOf(d), outcomeOf(d), deciderOf(d, page), taskOf(d, page)],
  })))}</section>`;
}

/**
 * What became of one call, in place of the call that waits.
 * @param {any} d
 * @param {Page} page
 */
export function decidedPanel(d, page) {
  return html`<h2>${nameOf(d)}</h2>${facts([["Outcome", outcomeOf(d)], ["Decided", deciderOf(d, page)], ["Arguments", d.short && argumentsOf(d)], ["Reason", d.reason], ["Task", taskOf(d, page)]])}`;
}

/** @param {any} d */
function nameOf(d) {
  return d.operation ? html`Operator ${d.starter} asked for <code>${d.operation}</code>` : html`<code>${d.tool}</code> by role ${d.role}`;
}

/** @param {any} d */
function callOf(d) {
  return html`${nameOf(d)}${d.short ? html`<div class="quiet">${argumentsOf(d)}</div>` : nothing}`;
}

/**
 * The beginning of the arguments, and of those that an approver has replaced.
 * @param {any} d
 */
function argumentsOf(d) {
  return html`<code>${d.short}</code>${d.shortBefore ? html`<br>changed from <code>${d.shortBefore}</code>` : nothing}`;
}

/** @param {any} d */
function outcomeOf(d) {
  switch (d.status) {
    case "approved": return mark("wait", "approved, not started");
    case "running": return mark("work", "running");
    case "ok": return mark("good", d.operation ? "approved and used" : "ran without an error");
    case "failed": return html`${mark("bad", "ran with an error")}${codeOf(d)}`;
    case "expired": return mark("off", "not decided in time");
    case "void": return html`${mark("off", "did not run: something changed meanwhile")}${codeOf(d)}`;
  }
  return html`${mark("off", d.status)}${codeOf(d)}`;
}

/** @param {any} d */
function codeOf(d) {
  return d.code ? html` <code>${d.code}</code>` : nothing;
}

/** @param {any} d @param {Page} page */
function deciderOf(d, page) {
  return html`${d.by ? html`by ${personName(d.by)}${d.override ? ", in place of the approvers" : ""}, ` : nothing}${when(d.at, page.now)}`;
}

/**
 * The task of a call that waits or is decided: the beginning of its text. It is a link if the user may
 * see the task, as the operator or as who started it.
 * @param {any} d
 * @param {Page} page
 */
export function taskOf(d, page) {
  if (!d.task) {
    return quiet("none");
  }
  const text = excerpt(d.taskShort || "a task without text", textMost);
  return page.session.operator || d.starter === page.session.user ? html`<a href=${placeLink("task", d.task)}>${text}</a>` : html`${text} ${idChip(d.task)}`;
}
