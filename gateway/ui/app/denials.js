// The denied calls of tasks, in the newest part of the record.

import { get } from "./api.js";

/** @typedef {import("./stream.js").OrgEvent} OrgEvent */
/** @typedef {Map<string, Set<number>>} Denials the numbers of the events by task */

const eventsRead = 1000;

/**
 * @param {AbortSignal} [signal]
 * @returns {Promise<{denials: Denials, denialsCut: boolean}>} denialsCut tells whether there may be older ones
 */
export async function loadDenials(signal) {
  const { items, next } = await get("api/v1/events", { type: "tool_call", denied: true, limit: eventsRead }, signal);
  const denials = /** @type {Denials} */ (new Map());
  for (const e of items) {
    addDenial(denials, e);
  }
  return { denials, denialsCut: Boolean(next) };
}

/**
 * Notes an event once, if it is the denied call of a task. It reports whether it is.
 * @param {Denials} denials
 * @param {OrgEvent} e
 */
export function addDenial(denials, e) {
  const denied = e.type === "tool_call" && e.decision === "denied" && Boolean(e.task);
  if (denied) {
    denials.set(e.task ?? "", (denials.get(e.task ?? "") ?? new Set()).add(e.seq));
  }
  return denied;
}
