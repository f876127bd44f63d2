// Approval rules in words: which calls wait, and who must approve them. All functions are pure.

import { count, duration } from "./format.js";

/**
 * Says who must approve, such as "1 person in role finance".
 * @param {any} rule
 */
export function approversOf({ from, unless, escalate, self }) {
  const all = from?.all ?? [], any = from?.any ?? [];
  const people = (all.length ? all : any).map(groupText).join(all.length ? " and " : " or ");
  return [people, unless && `unless ${JSON.stringify(unless)}`, escalate && `after ${duration(escalate.after / 1e6)} ${groupText(escalate.to)} alone`,
    self && "who may be the person who started the task"].filter(Boolean).join(", ");
}

/**
 * Says which calls wait and who must approve them, such as "write_file needs 1 person in role finance".
 * @param {any} rule
 */
export function ruleText(rule) {
  return `${callsOf(rule)} ${rule.tools?.length === 1 ? "needs" : "need"} ${approversOf(rule)}`;
}

/**
 * Says that calls wait, such as "with approval by 1 person in role finance". Without the rules, who
 * approves is not known.
 * @param {any[]} [rules]
 */
export function approvalText(rules) {
  return rules?.length ? `with approval by ${rules.map(approversOf).join(", and by ")}` : "with approval";
}

/** @param {any} rule */
function callsOf({ tools = [], groups = [], effect }) {
  const named = `${count(groups.length, "group").replace(/^.* /, "")} ${groups.join(", ")}`;
  if (tools.length) {
    return [tools.join(" and "), groups.length && `of ${named}`, effect && `that are ${effect}`].filter(Boolean).join(" ");
  }
  return [effect, "tools", groups.length && `of ${named}`].filter(Boolean).join(" ");
}

/** @param {any} group */
function groupText(group) {
  return `${count(group.count || 1, group.operator ? "operator" : "person").replace("persons", "people")}${group.role ? ` in role ${group.role}` : ""}`;
}
