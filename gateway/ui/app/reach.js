// What agents reach through others that they spawn, and how a change of a role changes it.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { mark, names, quiet } from "./parts.js";

/**
 * Shows what agents reach through others.
 * @param {any[]} reach
 */
export function reachList(reach) {
  if (reach.length === 0) {
    return nothing;
  }
  const list = (/** @type {any} */ of, /** @type {string} */ what) => html`${of.gains.length ? html`<div>${mark("plus", "may " + what)} ${names(of.gains, 60)}</div>` : nothing}
    ${of.loses.length ? html`<div>${mark("minus", "may no longer " + what)} ${names(of.loses, 60)}</div>` : nothing}`;
  return html`<h3>Reach ${quiet("what agents reach through those that they spawn")}</h3><ul class="plain">${reach.map((d) => html`<li><strong>${d.name}</strong>
    ${list(d.roles, "spawn agents of")} ${list(d.tools, "put into roles that it creates")}</li>`)}</ul>`;
}
