// The text of answers that models are writing. Pure: without a browser.
//
// Two streams meet here: the one that all tabs share has the recorded events, and the one of a
// task has the parts of texts. An answer that is recorded replaces its parts, whichever comes first.

/**
 * @typedef {{agent: string, text?: string, note?: string, again?: boolean, end?: number}} Part of an answer; again
 * voids the parts before, note says what the model waits for, end is the number of the event that has recorded the answer
 */
/** @typedef {{text: string, note: string, cut: boolean, after: number, end: number, recorded: boolean}} Draft after and end are the events that recorded the answer before and this one, 0 if none */
/** @typedef {Map<string, Draft>} Writing by agent */

const textMost = 8000; // characters of an answer that are kept, the last ones
const noteMost = 500;
const agentsMost = 50; // that write at once

/**
 * Adds a part.
 * @param {Writing} writing
 * @param {Part} part
 * @param {number} last the last recorded event that the page has
 */
export function addPart(writing, part, last) {
  let draft = writing.get(part.agent);
  if (part.end) {
    if (draft && part.end > last) {
      draft.end = part.end;
    } else {
      writing.delete(part.agent);
    }
    return;
  }
  if (!draft || draft.end) {
    if (!draft && writing.size >= agentsMost) {
      return;
    }
    draft = { text: "", note: "", cut: false, after: draft?.end ?? 0, end: 0, recorded: false };
    writing.set(part.agent, draft);
  }
  const text = (part.again ? "" : draft.text) + (part.text ?? "");
  draft.recorded &&= !part.again;
  draft.cut = text.length > textMost || draft.cut && !part.again;
  draft.text = text.slice(-textMost);
  draft.note = (part.note ?? "").slice(0, noteMost);
}

/**
 * Applies a recorded event, which ends the answer of its agent or all of them.
 * @param {Writing} writing
 * @param {import("./stream.js").OrgEvent} e
 */
export function endWriting(writing, e) {
  if (e.type === "result") {
    writing.clear();
    return;
  }
  const draft = endsAnswer(e) && writing.get(e.agent ?? "");
  if (!draft || e.seq <= draft.after) {
    return;
  }
  if (draft.end) {
    writing.delete(e.agent ?? "");
  } else {
    draft.recorded = true; // further parts of it may still be on their way
  }
}

/** @param {{type: string}} e */
export function endsAnswer(e) {
  return e.type === "model_answered" || e.type === "error" || e.type === "agent_terminated";
}
