// A draft of changes to a role. Pure: without a browser.

import { parseExact } from "./exact-json.js";

/**
 * @typedef {object} Draft
 * @property {string[]} use
 * @property {string[]} grant
 * @property {Record<string, any>} fields
 * @property {{use: string[], grant: string[], fields: Record<string, any>}} saved what the role has now
 */

/**
 * @param {any} role of the gateway
 * @param {string} text the role as it was sent
 * @returns {Draft}
 */
export function newDraft(role, text) {
  const { bind } = parseExact(text);
  const fields = {
    description: role.description ?? "", rolePrompt: role.rolePrompt ?? "", llmServiceId: role.llmServiceId ?? "", server: role.server ?? "", toolGated: String(role.toolGated ?? false),
    pattern: role.pattern ?? "react", rounds: role.limits?.rounds ? String(role.limits.rounds) : "", bind: bind ? JSON.stringify(bind, null, 2) : "",
  };
  const use = [...(role.toolGroups ?? [])], grant = [...(role.grant ?? [])];
  return { use: [...use], grant: [...grant], fields: { ...fields }, saved: { use, grant, fields } };
}

/**
 * @param {Draft} draft
 * @param {"use" | "grant"} kind
 * @param {string} group
 */
export function choiceOf(draft, kind, group) {
  return draft[kind].includes(group);
}

/**
 * Chooses a group or not. All groups, "*", stands alone.
 * @param {Draft} draft
 * @param {"use" | "grant"} kind
 * @param {string} group
 * @param {boolean} chosen
 */
export function setChoice(draft, kind, group, chosen) {
  const others = draft[kind].filter((id) => id !== group && (group !== "*" || !chosen) && (id !== "*" || !chosen));
  draft[kind] = chosen ? [...others, group] : others;
}

/**
 * Returns the id of the part of a group that only reads.
 * @param {string} group
 */
export function readPart(group) {
  return group + ":read";
}

/** @param {Draft} draft */
export function isChanged(draft) {
  return Object.keys(change(draft)).length > 0;
}

/**
 * Returns the fields that differ from the role, as a request has them: null is the default.
 * @param {Draft} draft
 * @returns {Record<string, any>}
 */
export function change(draft) {
  /** @type {Record<string, any>} */
  const changes = {};
  if (!sameMembers(draft.use, draft.saved.use)) {
    changes.toolGroups = draft.use;
  }
  if (!sameMembers(draft.grant, draft.saved.grant)) {
    changes.grant = draft.grant;
  }
  for (const [name, value] of Object.entries(draft.fields)) {
    if (value !== draft.saved.fields[name]) {
      changes[name === "rounds" ? "limits" : name] = requestValue(name, value);
    }
  }
  return changes;
}

/**
 * Returns a field as a request has it. One that has a fault is undefined.
 * @param {string} name
 * @param {string} value
 */
function requestValue(name, value) {
  switch (name) {
    case "server": return value;
    case "toolGated": return value === "strict" ? value : value === "true";
    case "rounds": return { rounds: value === "" ? null : Number(value) };
    case "bind": return value.trim() === "" ? null : parseBind(value);
  }
  return value === "" ? null : value;
}

/** @param {string} text */
function parseBind(text) {
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns why a draft cannot be sent, "" if it can.
 * @param {Draft} draft
 * @returns {string}
 */
export function faultOf(draft) {
  const { bind, rounds } = draft.fields;
  if (rounds !== "" && !/^[1-9][0-9]{0,8}$/.test(rounds)) {
    return "Answers with calls in one turn: a number from 1 is needed.";
  }
  try {
    JSON.parse(bind.trim() || "{}");
  } catch (/** @type {any} */ error) {
    return "Bounds on arguments: this is not JSON: " + error.message;
  }
  return "";
}

/** @param {string[]} a @param {string[]} b */
function sameMembers(a, b) {
  return a.length === b.length && a.every((id) => b.includes(id));
}

/**
 * Returns the names of all tools that a difference adds for anyone, sorted.
 * @param {any} diff
 * @returns {string[]}
 */
export function gainsOf(diff) {
  const all = [...diff.roles, ...diff.agents, ...diff.callers, ...diff.tasks].flatMap((d) => d.gains);
  return [...new Set(all)].sort();
}

/**
 * Returns the names of all roles and tools that are reached in addition, sorted.
 * @param {any[]} reach
 * @returns {string[]}
 */
export function reachedOf(reach) {
  return [...new Set(reach.flatMap((d) => [...d.roles.gains, ...d.tools.gains]))].sort();
}
