// The actions that pause and resume a task, a role or the organization.

import { send } from "./api.js";
import { ask, field } from "./dialog.js";
import { command } from "./format.js";

/** @typedef {import("./screen.js").Page} Page */

/**
 * Asks for a pause or its end, and loads the screen again.
 * @param {{ task?: string, role?: string, all?: boolean }} what
 * @param {"pause" | "resume"} verb
 * @param {string} name of what is paused, such as the task
 * @param {Page} page
 */
export async function pause(what, verb, name, page) {
  const title = verb === "pause" ? `Pause ${name}` : `Resume ${name}`;
  const named = what.all ? ["--all"] : what.task ? [what.task] : ["--role", what.role ?? ""];
  await ask({
    title, confirm: verb === "pause" ? "Pause" : "Resume", danger: verb === "pause", body: field("Reason", "reason"),
    command: ({ reason }) => command(verb, ...named, ...(reason ? ["--reason", reason] : [])),
    run: ({ reason }) => send("POST", `api/v1/${verb}`, reason ? { ...what, reason } : what),
  });
  page.reload();
}
