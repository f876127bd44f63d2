// The questions of tools that wait for an answer.

import { get, list, RequestError } from "./api.js";
import { hasEnded } from "./organization-model.js";

const askedMost = 1000; // events that are read to find the tasks that have asked

/**
 * Reads the questions of one task. A task that is gone has none.
 * @param {string} task
 * @param {AbortSignal} [signal]
 * @returns {Promise<any[]>}
 */
export async function questionsOf(task, signal) {
  try {
    return (await get(`api/v1/tasks/${encodeURIComponent(task)}/questions`, {}, signal)).questions;
  } catch (error) {
    if (error instanceof RequestError && error.code === "task_not_found") {
      return [];
    }
    throw error;
  }
}

/**
 * Reads the questions of all tasks that have asked lately and have not ended.
 * @param {import("./organization-model.js").Tree} tree
 * @param {AbortSignal} signal
 */
export async function openQuestions(tree, signal) {
  const asked = await list("api/v1/events", { type: "question_asked" }, askedMost, signal);
  const tasks = new Set(asked.items.map((e) => e.task));
  const live = [...tree.tasks.values()].filter((t) => tasks.has(t.id) && !hasEnded(t.status));
  return (await Promise.all(live.map((t) => questionsOf(t.id, signal)))).flat();
}
