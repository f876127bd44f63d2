// The people and programs with a token of the configuration, and whether each may call a tool.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { list } from "./api.js";
import { count } from "./format.js";
import { mark, quiet, table } from "./parts.js";
import { roleLink } from "./place.js";

const shownMost = 200;
const namedMost = 10;

/** @typedef {{name: string, scope: string, role?: string, roleId?: string, expired?: boolean}} Token */

/**
 * Loads the tokens of the configuration, without their secrets.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Token[]>}
 */
export async function loadTokens(signal) {
  return (await list("api/v1/tokens", {}, 5000, signal)).items;
}

/**
 * Lists who holds a token and whether the role of each may call a tool.
 * @param {Token[]} tokens
 * @param {Map<string, any>} holding the roles that may call the tool, by id
 */
export function tokenHolders(tokens, holding) {
  const people = tokens.filter((t) => t.scope !== "metrics"), operators = people.filter((t) => t.scope === "operator").map((t) => t.name);
  const callers = people.filter((t) => t.scope === "role"), shown = callers.slice(0, shownMost);
  return html`<h3>People and programs ${quiet("with a token of the configuration")}</h3>
    ${shown.length ? table("People and programs", ["Name", "In role", "May call it"], shown.map((t) => ({
    cells: [t.name, t.roleId ? html`<a href=${roleLink(t.roleId)}>${t.role}</a>` : t.role, answerFor(t, holding)],
  }))) : html`<p class="quiet">No token has a role.</p>`}
    ${callers.length > shown.length ? html`<p class="quiet">${count(callers.length - shown.length, "other token")} are not shown.</p>` : nothing}
    <p class="quiet">${operators.length ? html`Operators (${operators.slice(0, shownMost).join(", ")}) have no role of their own: they call it in a role that may call it. ` : nothing}A caller's own limits, such as its scopes, may allow less. Users who sign in at an issuer are not listed.</p>`;
}

/**
 * Returns the names of the tokens with a role, such as " (eve)"; "" if there is none.
 * @param {string} role its name
 * @param {Token[]} tokens
 */
export function holdersOf(role, tokens) {
  const people = tokens.filter((t) => t.scope === "role" && t.role === role && !t.expired).map((t) => t.name);
  return people.length ? ` (${people.slice(0, namedMost).join(", ")}${people.length > namedMost ? ", …" : ""})` : "";
}

/** @param {Token} token @param {Map<string, any>} holding */
function answerFor({ expired, roleId = "" }, holding) {
  if (expired) {
    return mark("off", "no: the token has expired");
  }
  const role = holding.get(roleId);
  return !role ? mark("bad", "no") : role.waits ? mark("approval", "with approval") : mark("good", "yes");
}
