// What would let a role call a tool that is not granted to it.

import { html } from "../vendor/lit-html/lit-html.js";
import { roleLink } from "./place.js";

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
