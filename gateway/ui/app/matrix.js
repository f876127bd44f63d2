// The table of roles and tools on the screen "Who can".

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { filterField, quiet, scrollEdges } from "./parts.js";
import { placeLink, roleLink, setParams } from "./place.js";

/** @typedef {import("./screen.js").Place} Place */
/** @typedef {{id: string, name: string, allowed: Set<string>, waits: Set<string>}} Row a role, the tools that it may call, and those of them that need approval */

export const rolesShown = 200;
const toolsShown = 60;
const cellWidth = 28, characterWidth = 8; // pixels

/**
 * The roles and the tools that they may call.
 * @param {{tools: any[], roles: any[], rows: Row[]}} data
 * @param {Place} place
 */
export function matrix(data, place) {
  const words = (place.params.filter ?? "").toLowerCase();
  const tools = data.tools.filter((/** @type {any} */ t) => `${t.name} ${t.group} ${t.effect}`.toLowerCase().includes(words)).sort((/** @type {any} */ a, /** @type {any} */ b) => a.group.localeCompare(b.group) || a.name.localeCompare(b.name));
  const shown = tools.slice(0, toolsShown);
  return html`<p class="actions">${filterField("Filter tools by name, group or effect", place.params.filter ?? "", (filter) => setParams({ filter }))}
      <button type="button" @click=${() => download(shown, data.rows)}>Save as CSV</button>
      ${tools.length > shown.length ? quiet(`${shown.length} of ${tools.length} tools are shown; filter to see others.`) : nothing}
      ${data.roles.length > rolesShown ? quiet(`${rolesShown} of ${data.roles.length} roles are shown.`) : nothing}</p>
    <div class="matrix-box" tabindex="0" role="region" aria-label="Roles and tools" ${scrollEdges()}><table class="matrix">
      <caption class="hidden">Which role may call which tool</caption>
      <thead>${heads(shown)}</thead>
      <tbody>${data.rows.map((row) => matrixRow(row, shown))}</tbody></table></div>
    <p class="more">More tools are on the right →</p>
    <p class="quiet">✓ allowed, ◇ with approval, · denied. Choose a cell for the rule that decides.</p>`;
}

/**
 * A row of groups, and a row of their tools.
 * @param {any[]} tools in the order of their groups
 */
function heads(tools) {
  const groups = [...new Set(tools.map((t) => t.group))].map((id) => ({ id, columns: tools.filter((t) => t.group === id).length }));
  return html`<tr><th scope="col" rowspan="2"><span class="hidden">Role</span></th>${groups.map(({ id, columns }) =>
    html`<th scope="colgroup" colspan=${columns} class="first ${isNarrow(id, columns) ? "turned" : ""}"><a href=${placeLink("tools", id)} title="Group ${id}">${id}</a></th>`)}</tr>
    <tr>${tools.map((t, i) => html`<th scope="col" class="turned ${firstOf(tools, i)}" title="${t.group}, ${t.effect}"><a href=${placeLink("access", "", { tool: t.name })}>${t.name}</a></th>`)}</tr>`;
}

/**
 * Reports whether the name of a group is wider than its columns.
 * @param {string} group
 * @param {number} columns
 */
function isNarrow(group, columns) {
  return group.length * characterWidth > columns * cellWidth;
}

/**
 * Returns the class of a cell that begins a group.
 * @param {any[]} tools
 * @param {number} i
 */
function firstOf(tools, i) {
  return tools[i].group === tools[i - 1]?.group ? "" : "first";
}

/** @param {Row} row @param {any[]} tools */
function matrixRow(row, tools) {
  const { id, name } = row;
  return html`<tr><th scope="row"><a href=${roleLink(id)}>${name}</a></th>${tools.map((t, i) => {
    const { kind, sign, words } = answers[answerOf(row, t.name)];
    return html`<td class=${firstOf(tools, i)}><button type="button" class=${kind} aria-label=${words(name, t.name)} @click=${() => setParams({ role: name, tool: t.name })}>${sign}</button></td>`;
  })}</tr>`;
}

/** The three answers, as cells show them. */
const answers = {
  "yes": { kind: "yes", sign: "✓", words: (/** @type {string} */ role, /** @type {string} */ tool) => `${role} may call ${tool}` },
  "with approval": { kind: "approval", sign: "◇", words: (/** @type {string} */ role, /** @type {string} */ tool) => `${role} may call ${tool} with approval` },
  "no": { kind: "no", sign: "·", words: (/** @type {string} */ role, /** @type {string} */ tool) => `${role} may not call ${tool}` },
};

/** @param {Row} row @param {string} tool */
function answerOf({ allowed, waits }, tool) {
  return waits.has(tool) ? "with approval" : allowed.has(tool) ? "yes" : "no";
}

/** @param {any[]} tools @param {Row[]} rows */
function download(tools, rows) {
  const cell = (/** @type {string} */ text) => `"${(/^[=+\-@\t\r]/.test(text) ? "'" + text : text).replaceAll('"', '""')}"`;
  const lines = rows.map((row) => [row.name, ...tools.map((t) => answerOf(row, t.name))].map(cell).join(","));
  const text = [["role", ...tools.map((t) => t.name)].map(cell).join(","), ...lines].join("\r\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = "who-can.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}
