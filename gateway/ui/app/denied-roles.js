// The roles that may not call a tool, and the rule of each, on the screen "Who can".

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { send } from "./api.js";
import { denialText } from "./grant-hint.js";
import { mark, quiet, table } from "./parts.js";
import { placeLink, roleLink } from "./place.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {{id: string, name: string}} Role */

export const reasonsMost = 50; // each takes a request

/** Which tool's roles are open, and the verdicts that were read for them, by the name of the role. */
const view = { open: "", key: "", verdicts: /** @type {Map<string, any>} */ (new Map()) };

/**
 * Lists the roles that may not call a tool. The reasons are read when the list is opened.
 * @param {string} tool
 * @param {Role[]} denied
 * @param {number} version of rights
 * @param {Page} page
 */
export function deniedRoles(tool, denied, version, page) {
  if (denied.length === 0) {
    return html`<h3>Roles that may not</h3><p class="quiet">There is none.</p>`;
  }
  const shown = denied.slice(0, reasonsMost), key = JSON.stringify([tool, version, shown.map((r) => r.name)]);
  if (view.open === tool && view.key !== key) {
    view.key = key;
    view.verdicts = new Map();
    learn(key, tool, shown, page);
  }
  const toggle = (/** @type {any} */ e) => {
    view.open = e.target.open ? tool : view.open === tool ? "" : view.open;
    page.redraw();
  };
  return html`<details class="denied-roles" .open=${view.open === tool} @toggle=${toggle}><summary><h3>Roles that may not (${denied.length}), and why</h3></summary>
    ${view.open === tool ? html`${table("Roles that may not", ["Role", "Why"], shown.map((r) => ({ href: roleLink(r.id), cells: [r.name, why(r, tool, view.verdicts.get(r.name))] })))}
      ${denied.length > shown.length ? html`<p>${quiet(`The first ${shown.length} of ${denied.length} are shown. Choose a role above for another.`)}</p>` : nothing}` : nothing}</details>`;
}

/** @param {Role} role @param {string} tool @param {any} verdict */
function why({ name }, tool, verdict) {
  const text = !verdict ? "…" : verdict.error ? mark("bad", verdict.error.message) : denialText(verdict.rule, name);
  return html`<a href=${placeLink("access", "", { role: name, tool })}>${text}</a>`;
}

/**
 * Reads the verdicts, a few at a time.
 * @param {string} key
 * @param {string} tool
 * @param {Role[]} roles
 * @param {Page} page
 */
async function learn(key, tool, roles, page) {
  const left = [...roles], verdicts = view.verdicts;
  const worker = async () => {
    for (let role = left.shift(); role && view.key === key; role = left.shift()) {
      verdicts.set(role.name, await send("POST", "api/v1/can", { role: role.name, tool }).catch((error) => ({ error })));
      page.redraw();
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
}
