// Screen: tool groups and tools, and the definitions that wait for acceptance.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { get, list, send } from "./api.js";
import { ask } from "./dialog.js";
import { command, count } from "./format.js";
import { commandLine, difference, facts, filterField, json, mark, names, oneLine, quiet, statusMark, table } from "./parts.js";
import { placeLink, setParams } from "./place.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {import("./screen.js").Place} Place */

/** @type {import("./screen.js").Screen} */
export const tools = {
  id: "tools", title: "Tools", key: "l", scope: "caller",
  loadKey: () => "",
  async load(_, signal, page) {
    const [groups, all, waiting, ready] = await Promise.all([
      list("api/v1/tool-groups", {}, 5000, signal), list("api/v1/tools", {}, 5000, signal),
      page.session.operator ? list("api/v1/quarantine", {}, 1000, signal) : { items: [] },
      get("readyz", {}, signal).catch((/** @type {any} */ error) => ({ error })),
    ]);
    return { groups: groups.items, tools: all.items, waiting: waiting.items, ready };
  },
  fold: (_, e) => e.type.startsWith("group_") || e.type === "item_changed" ? "reload" : false,
  isEmpty: (data) => data.groups.length === 0,
  empty: () => ({ text: "Your role may call no tools.", command: undefined }),
  tools: (data, place) => data.groups.length === 0 ? nothing : filterField("Filter groups and tools", place.params.filter ?? "", (filter) => setParams({ filter })),
  render: (data, place, page) => html`<div class="split"><div>
    ${readiness(data.ready)}${quarantine(data, page)}${groupList(data, place)}</div>${details(data, place, page)}</div>`,
};

/** @param {any} ready */
function readiness(ready) {
  const reasons = ready.error?.details?.reasons ?? [];
  return ready.error && reasons.length ? html`<div class="notice">${mark("bad", "The process is not ready")}: ${reasons.map((/** @type {any} */ r) => html`<code>${r.code ?? r}</code> ${r.message ?? ""} `)}</div>` : nothing;
}

/** @param {any} data @param {Page} page */
function quarantine(data, page) {
  if (data.waiting.length === 0) {
    return nothing;
  }
  return html`<section><h2>${mark("wait", `${count(data.waiting.length, "definition")} wait for acceptance`)}</h2>
    <div class="cards">${data.waiting.map((/** @type {any} */ q) => html`<div class="card"><h3><code>${q.name}</code> ${quiet("of " + q.owner)}</h3>
      <p>${q.accepted ? "The definition has changed since it was accepted." : "The tool is new."}</p>${definitionChange(q)}
      ${commandLine(command("tool", "accept", q.name, "--digest", q.digest))}
      <div class="buttons"><button type="button" class="primary" @click=${() => accept(q, page)}>Accept …</button></div></div>`)}</div></section>`;
}

/** @type {WeakMap<any, any>} */
const changes = new WeakMap(); // by definition: many long ones may wait, and the page is drawn often

/** @param {any} q */
function definitionChange(q) {
  if (!changes.has(q)) {
    const offered = JSON.stringify(q.offered, null, 2), accepted = q.accepted ? JSON.stringify(q.accepted, null, 2) : "";
    changes.set(q, difference(accepted, offered));
  }
  return changes.get(q);
}

/** @param {any} q @param {Page} page */
async function accept(q, page) {
  await ask({
    title: `Accept the definition of ${q.name}`, confirm: "Accept", typed: q.name,
    body: html`<p>Roles that use its group may call it from then on. Its description reaches their models.</p>`,
    command: () => command("tool", "accept", q.name, "--digest", q.digest),
    run: () => send("POST", `api/v1/tools/${encodeURIComponent(q.name)}/accept`, { digest: q.digest, owner: q.owner }),
  });
  page.reload();
}

/** @param {any} data @param {Place} place */
function groupList(data, place) {
  const words = (place.params.filter ?? "").toLowerCase();
  const shown = data.groups.filter((/** @type {any} */ g) => `${g.id} ${g.owner} ${g.description} ${(g.tools ?? []).join(" ")}`.toLowerCase().includes(words));
  return html`<h2>Tool groups</h2>${table("Tool groups by id", ["Group", "Owner", "Tools", "About"], shown.map((/** @type {any} */ g) => ({
    href: placeLink("tools", g.id, place.params), current: place.id === g.id,
    cells: [html`<code>${g.id}</code>`, g.owner, g.hours && g.toolCount === 0 ? statusMark("closed") : g.toolCount, oneLine(g.description ?? "", 100)],
  })))}`;
}

/** @param {any} data @param {Place} place @param {Page} page */
function details(data, place, page) {
  const group = data.groups.find((/** @type {any} */ g) => g.id === place.id), one = data.tools.find((/** @type {any} */ t) => t.name === place.params.tool);
  if (!group) {
    return html`<aside class="panel" aria-label="Details"><p class="quiet">Choose a group to see its tools.</p></aside>`;
  }
  const own = data.tools.filter((/** @type {any} */ t) => t.group === group.id);
  return html`<aside class="panel" aria-label="Details"><h2>${group.id}</h2>
    ${facts([["About", group.description], ["Owner", group.owner], ["Parent", group.parent], ["Reserved", group.isReserved ? "yes" : undefined], ["Children", group.children?.length ? names(group.children, 20) : undefined]])}
    ${table("Tools of the group", ["Tool", "Effect", "Flags"], own.map((/** @type {any} */ t) => ({ href: placeLink("tools", group.id, { ...place.params, tool: t.name }), current: t === one, cells: [html`<code>${t.name}</code>`, html`<span class="fixed">${t.effect ?? ""}</span>`, flagsOf(t)] })))}
    ${one ? html`<h3><code>${one.name}</code></h3><p>${one.description}</p>
      ${facts([["Effect", one.effect], ["Flags", flagsOf(one)], ["States", one.availableInStates?.join(", ")], ["Leads to", one.state]])}
      ${page.session.operator ? html`<p><a href=${placeLink("access", "", { tool: one.name })}>Who may call it?</a></p>` : nothing}
      <h3>Arguments</h3>${json(one.inputSchema ?? {})}` : nothing}
    ${commandLine(command("group", "show", group.id))}</aside>`;
}

/**
 * The flags of a tool. A tool without flags of its own counts as one with all of them.
 * @param {any} tool
 */
function flagsOf(tool) {
  return html`${tool.flags?.length ? tool.flags.join(", ") : "none"}${tool.flagsKnown ? nothing : html` ${mark("unknown", "not set")}`}`;
}
