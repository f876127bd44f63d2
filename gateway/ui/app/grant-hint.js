// Why a call is decided as it is, and what would let a role call a tool that is not granted to it.

import { html } from "../vendor/lit-html/lit-html.js";
import { roleLink } from "./place.js";

/** The name of what the gateway calls the epoch: a number that grows with each change of rights. */
export const rightsVersion = "Version of rights";

const notGranted = "not granted: no group that the role may use has this tool";
const rootRule = "root uses org_management alone";

/** The limits of which an event says "not granted" alone, as Who can names them. */
const limitRules = /^(the toolGroups of role |root uses |the server |what )/;

/**
 * Returns the rule of a denial in words, the same for an event and for a verdict. A verdict names
 * the limit that denies; an event of root has it, too, since the tools of root are fixed.
 * @param {string | undefined} rule
 * @param {string | undefined} role its name
 */
export function denialText(rule, role) {
  const limit = rule === "not granted" ? role === "root" && rootRule : rule && limitRules.test(rule) && rule;
  return limit ? `${notGranted} (${limit})` : rule === "not granted" ? notGranted : rule;
}

/**
 * Says which group a role needs for a tool.
 * @param {string} role
 * @param {string} group that has the tool
 * @param {boolean} operator operators may open the role
 */
export function grantHint(role, group, operator) {
  const named = html`group <code>${group}</code>`;
  if (role === "root") {
    return html`The tools of root are fixed. Agents of a role that uses ${named} may call it.`;
  }
  return html`Role ${operator ? html`<a href=${roleLink(role)}>${role}</a>` : role} may call it when it uses ${named}, unless another limit denies it.`;
}
