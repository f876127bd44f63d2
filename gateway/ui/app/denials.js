// The denied calls and the failed turns of tasks, in the newest part of the record.

import { html } from "../vendor/lit-html/lit-html.js";
import { get } from "./api.js";
import { count, number } from "./format.js";
import { mark } from "./parts.js";

/** @typedef {import("./stream.js").OrgEvent} OrgEvent */
/** @typedef {Map<string, Set<number>>} Denials the numbers of the events by task */

const eventsRead = 1000;

/**
 * Loads the denied calls of tasks.
 * @param {AbortSignal} [signal]
 * @returns {Promise<{denials: Denials, denialsCut: boolean}>} denialsCut tells whether there may be older ones
 */
export async function loadDenials(signal) {
  const { found, cut } = await loadByTask({ type: "tool_call", denied: true }, signal);
  return { denials: found, denialsCut: cut };
}

/**
 * Loads the failed turns of agents, by task.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Denials>}
 */
export async function loadFailedTurns(signal) {
  return (await loadByTask({ type: "error" }, signal)).found;
}

/** @param {Record<string, any>} filter of events @param {AbortSignal} [signal] */
async function loadByTask(filter, signal) {
  const { items, next } = await get("api/v1/events", { ...filter, limit: eventsRead }, signal);
  const found = /** @type {Denials} */ (new Map());
  for (const e of items) {
    addTo(found, e);
  }
  return { found, cut: Boolean(next) };
}

/**
 * Notes an event once, if it is the failed turn of an agent of a task. It reports whether it is.
 * @param {Denials} failedTurns
 * @param {OrgEvent} e
 */
export function addFailedTurn(failedTurns, e) {
  return e.type === "error" && addTo(failedTurns, e);
}

/**
 * Notes an event once, if it is the denied call of a task. It reports whether it is.
 * @param {Denials} denials
 * @param {OrgEvent} e
 */
export function addDenial(denials, e) {
  return e.type === "tool_call" && e.decision === "denied" && addTo(denials, e);
}

/** @param {Denials} found @param {OrgEvent} e */
function addTo(found, e) {
  if (e.task) {
    found.set(e.task, (found.get(e.task) ?? new Set()).add(e.seq));
  }
  return Boolean(e.task);
}

/**
 * Returns marks for the failed turns and the denied calls of a task.
 * @param {number} [failed]
 * @param {number} [denied]
 * @returns {any[]}
 */
export function faultMarks(failed, denied) {
  return [failed && count(failed, "failed turn"), denied && `${number(denied)} denied`].filter(Boolean).map((text) => html`${mark("bad", String(text))} `);
}
