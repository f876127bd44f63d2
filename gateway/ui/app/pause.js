// The actions that pause and resume a task, a role or the organization.

import { html } from "../vendor/lit-html/lit-html.js";
import { send } from "./api.js";
import { ask, field } from "./dialog.js";
import { command } from "./format.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {{ task?: string, role?: string, all?: boolean }} What */

/**
 * Asks for a pause or its end, and loads the screen again.
 * @param {What} what
 * @param {"pause" | "resume"} verb
 * @param {string} name of what is paused, such as the task
 * @param {Page} page
 */
export async function pause(what, verb, name, page) {
  const title = verb === "pause" ? `Pause ${name}` : `Resume ${name}`;
  const named = what.all ? ["--all"] : what.task ? [what.task] : ["--role", what.role ?? ""];
  const done = await ask({
    title, confirm: verb === "pause" ? "Pause" : "Resume", danger: verb === "pause",
    body: html`${verb === "pause" ? pauseEffect(what) : resumeEffect()}${field("Reason (optional)", "reason")}`,
    command: ({ reason }) => command(verb, ...named, ...(reason ? ["--reason", reason] : [])),
    run: ({ reason }) => send("POST", `api/v1/${verb}`, reason ? { ...what, reason } : what),
  });
  if (done !== undefined) { // else edits on the screen stay
    page.reload();
  }
}

/**
 * Says what a pause stops and what it does not.
 * @param {What} what
 */
function pauseEffect(what) {
  const who = what.all ? "all agents and callers" : what.task ? "the agents of this task" : "the agents and callers of this role, and of roles that its agents have created";
  const others = what.all ? "Tasks can still be started, and wait. Calls of callers are denied meanwhile."
    : what.task ? "Other tasks go on. The time of the pause does not count against the timeout of the task."
      : "Other roles go on. No agent is spawned and no task is started with this role. Calls of its callers are denied meanwhile. Timeouts of tasks go on.";
  return html`<ul class="points">
    <li>Stops: ${who}. No call of theirs starts, and no model is asked for them.</li>
    <li>Goes on: calls and answers that have begun, to their end. Approvals can be given, and keep their deadlines.</li>
    <li>${others}</li>
    <li>Resume on this screen lets them go on where they stopped. No call is repeated or lost.</li></ul>`;
}

function resumeEffect() {
  return html`<p>Agents go on where they stopped, when their task, their roles and the organization are all resumed. No call is repeated or lost.</p>`;
}
