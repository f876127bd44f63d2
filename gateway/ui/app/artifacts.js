// Screen: artifacts, with a preview of what is safe to show.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { list } from "./api.js";
import { bytes, command } from "./format.js";
import { commandLine, facts, filterField, idChip, json, quiet, table, when } from "./parts.js";
import { placeLink, setParams } from "./place.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {import("./screen.js").Place} Place */

const shownMost = 1000;
const previewMost = 1 << 20; // bytes
const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** @type {{id: string, text?: string, error?: string}} */
let preview = { id: "" };

/** @type {import("./screen.js").Screen} */
export const artifacts = {
  id: "artifacts", title: "Artifacts", key: "f", scope: "operator",
  loadKey: () => "",
  async load(_, signal) {
    const page = await list("api/v1/artifacts", {}, shownMost, signal);
    return { artifacts: page.items.reverse(), more: page.more };
  },
  fold: (_, e) => e.type === "tool_result" && typeof e.result === "object" && JSON.stringify(e.result).includes("artifact:") ? "reload" : false,
  isEmpty: (data) => data.artifacts.length === 0,
  empty: () => ({ text: "No artifact was stored yet. Agents store reports, files and pictures here.", command: command("artifact", "list") }),
  tools: (_, place) => filterField("Filter artifacts", place.params.filter ?? "", (filter) => setParams({ filter })),
  render: (data, place, page) => html`<div class="split"><div>${artifactTable(data, place, page)}
      ${data.more ? html`<p class="quiet">The first ${shownMost} artifacts are listed.</p>` : nothing}</div>${details(data, place, page)}</div>`,
};

/**
 * The title of an artifact, which an agent has written: meta may have anything.
 * @param {any} a
 * @param {string} other without a title
 */
function titleOf(a, other) {
  return [a.meta?.title, a.meta?.name].find((t) => typeof t === "string" && t !== "") ?? other;
}

/** @param {any} data @param {Place} place @param {Page} page */
function artifactTable(data, place, page) {
  const words = (place.params.filter ?? "").toLowerCase();
  const shown = data.artifacts.filter((/** @type {any} */ a) => `${a.type} ${titleOf(a, "")} ${a.id} ${a.mediaType ?? ""}`.toLowerCase().includes(words));
  return table("Artifacts, newest first", ["Title", "Type", "Size", "Stored"], shown.map((/** @type {any} */ a) => ({
    href: placeLink("artifacts", a.id, place.params), current: a.id === place.id,
    cells: [titleOf(a, a.id), a.mediaType ?? a.type, bytes(a.size ?? 0), when(a.createdAt, page.now)],
  })));
}

/** @param {any} data @param {Place} place @param {Page} page */
function details(data, place, page) {
  const a = data.artifacts.find((/** @type {any} */ one) => one.id === place.id);
  if (!a) {
    return html`<aside class="panel" aria-label="Details"><p class="quiet">Choose an artifact to see what it is.</p></aside>`;
  }
  const address = `api/v1/artifacts/${encodeURIComponent(a.id)}?content=true`;
  return html`<aside class="panel" aria-label="Details"><h2>${titleOf(a, a.type)}</h2>
    ${facts([["Type", a.type], ["Content", a.mediaType], ["Size", bytes(a.size ?? 0)], ["Task", a.taskId && html`<a href=${placeLink("task", a.taskId)}>open</a>`], ["Agent", a.agentId && idChip(a.agentId)], ["Stored", when(a.createdAt, page.now)], ["Id", idChip(a.id)]])}
    <div class="actions"><a class="button" href=${address} download>Download</a></div>
    ${(a.size ?? 0) > previewMost ? quiet("It is too large for a preview.") : pictures.has(a.mediaType) ? html`<img class="preview" src=${address} alt=${titleOf(a, "picture")}>` : textPreview(a, address, page)}
    ${commandLine(command("artifact", "get", a.id))}</aside>`;
}

/** @param {any} a @param {string} address @param {Page} page */
function textPreview(a, address, page) {
  if (!/^(text\/plain|application\/json)/.test(a.mediaType ?? "")) {
    return quiet("Only text, JSON and pictures are shown. Download it to look at it.");
  }
  if (preview.id !== a.id) {
    preview = { id: a.id };
    loadText(a.id, address, page);
  }
  return preview.error ? quiet(preview.error) : preview.text === undefined ? quiet("Loading …") : json(preview.text, 200_000);
}

/** @param {string} id @param {string} address @param {Page} page */
async function loadText(id, address, page) {
  try {
    const response = await fetch(address, { credentials: "same-origin" });
    const text = await response.text();
    preview = response.ok ? { id, text } : { id, error: "The content could not be read." };
  } catch {
    preview = { id, error: "The gateway did not answer." };
  }
  page.redraw();
}
