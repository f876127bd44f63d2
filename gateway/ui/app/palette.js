// The palette: a list of places or actions that a user filters and chooses with the keyboard.

import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { list } from "./api.js";
import { excerpt } from "./format.js";
import { announce } from "./parts.js";
import { goTo } from "./place.js";

/** @typedef {{kind: string, name: string, detail?: string, run: () => void}} Entry */

const shownMost = 12;
const tasksRead = 500, rolesRead = 1000, toolsRead = 5000, approvalsRead = 1000;
const nameMost = 80; // characters of a name

/**
 * Opens the palette with all places that the user may see.
 * @param {import("./screen.js").Screen[]} screens
 * @param {any} session
 */
export function openPlaces(screens, session) {
  const first = screens.map((s) => ({ kind: "screen", name: s.title, detail: s.key && "g " + s.key, run: () => goTo(s.id) }));
  open("Go to", "Screen, role, agent, task, tool or approval", first, (signal) => placesToRead(session.operator, signal));
}

/** Opens the palette with the actions that the screen offers now. It reports whether there are any. */
export function openActions() {
  const controls = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("main .title .tools :is(button, a), main :is(.actions, .buttons) :is(button, a)")]);
  const entries = controls.filter((c) => !(/** @type {any} */ (c).disabled) && c.checkVisibility()).map((c) => ({ kind: "action", name: actionName(c), detail: c.querySelector("kbd")?.textContent ?? "", run: () => c.click() }));
  if (entries.length > 0) {
    open("Actions", "Action", entries, () => []);
  }
  return entries.length > 0;
}

/** @param {HTMLElement} control */
function actionName(control) {
  const key = control.querySelector("kbd")?.textContent ?? "";
  return control.innerText.slice(0, control.innerText.length - key.length).trim();
}

/**
 * Reads places from the gateway. Each list is an own request, so that a slow one delays no other.
 * @param {boolean} operator
 * @param {AbortSignal} signal
 * @returns {Promise<Entry[]>[]}
 */
function placesToRead(operator, signal) {
  const reads = [
    list("api/v1/approvals", {}, approvalsRead, signal).then(({ items }) => items.map((a) => (
      { kind: "approval", name: a.tool ?? a.operation, detail: a.role ? `by role ${a.role}` : a.starter, run: () => goTo("approvals", a.id) }))),
    list("api/v1/tasks", { agents: operator }, tasksRead, signal).then(({ items }) => [...items.map(taskEntry), ...items.flatMap((t) => (t.agents ?? []).map(agentEntry))]),
    list("api/v1/tools", {}, toolsRead, signal).then(({ items }) => items.map((t) => ({ kind: "tool", name: t.name, detail: t.group, run: () => goTo("tools", t.group, { tool: t.name }) }))),
  ];
  if (operator) {
    reads.push(list("api/v1/roles", {}, rolesRead, signal).then(({ items }) => items.map((r) => ({ kind: "role", name: r.name, detail: excerpt(r.description ?? "", nameMost), run: () => goTo("roles", r.name) }))));
  }
  return reads;
}

/** @param {any} t @returns {Entry} */
function taskEntry(t) {
  return { kind: "task", name: excerpt(t.text, nameMost), detail: `${t.status} ${t.id}`, run: () => goTo("task", t.id) };
}

/** @param {any} a @returns {Entry} */
function agentEntry(a) {
  return { kind: "agent", name: a.name || a.role, detail: `${a.status} ${a.id}`, run: () => goTo("organization", a.id) };
}

/**
 * Returns the entries that have all words, best first: names that begin with them, then names
 * with a word that does, then others. Without words all entries remain.
 * @param {Entry[]} entries
 * @param {string} text
 * @returns {Entry[]}
 */
export function matching(entries, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    return entries;
  }
  const ranked = /** @type {Entry[][]} */ ([[], [], []]);
  for (const entry of entries) {
    const name = entry.name.toLowerCase(), all = `${entry.kind} ${name} ${(entry.detail ?? "").toLowerCase()}`;
    if (words.every((word) => all.includes(word))) {
      ranked[name.startsWith(words[0]) ? 0 : name.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(words[0])) ? 1 : 2].push(entry);
    }
  }
  return ranked.flat();
}

/** Ends the palette that was opened last. */
let endLast = () => {};

/**
 * @param {string} title
 * @param {string} label of the field
 * @param {Entry[]} entries
 * @param {(signal: AbortSignal) => Promise<Entry[]>[]} read further entries, which come later
 */
function open(title, label, entries, read) {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
  if (dialog.open) {
    return;
  }
  const closed = new AbortController();
  const state = { entries, text: "", at: 0, failed: false, reading: 0 };
  const draw = () => closed.signal.aborted || render(template(title, label, state, dialog, draw), dialog);
  for (const part of read(closed.signal)) {
    state.reading++;
    part.then((found) => { state.entries = [...state.entries, ...found]; }, () => { state.failed = true; }).finally(() => {
      state.reading--;
      draw();
    });
  }
  endLast(); // its close event may still be on its way
  endLast = () => {
    endLast = () => {};
    dialog.removeEventListener("close", closing);
    closed.abort();
    dialog.classList.remove("palette");
    render(nothing, dialog);
  };
  const closing = () => dialog.open || endLast();
  dialog.addEventListener("close", closing);
  dialog.classList.add("palette");
  draw();
  dialog.showModal();
  dialog.querySelector("input")?.focus();
}

/** @typedef {{entries: Entry[], text: string, at: number, failed: boolean, reading: number}} State */

/** @param {string} title @param {string} label @param {State} state @param {HTMLDialogElement} dialog @param {() => void} draw */
function template(title, label, state, dialog, draw) {
  const found = matching(state.entries, state.text), shown = found.slice(0, shownMost);
  const at = Math.min(state.at, shown.length - 1);
  const run = (/** @type {Entry | undefined} */ entry) => {
    if (entry) {
      dialog.addEventListener("close", entry.run, { once: true }); // an action may open the dialog again
      dialog.close();
      if (document.activeElement?.matches("button.find")) { // which the key would press, too
        document.getElementById("main")?.focus();
      }
    }
  };
  const type = (/** @type {any} */ e) => {
    Object.assign(state, { text: e.target.value, at: 0 });
    draw();
    announce(`${matching(state.entries, state.text).length} found`);
  };
  const press = (/** @type {KeyboardEvent} */ e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) {
      state.at = shown.length ? (at + step + shown.length) % shown.length : 0;
      draw();
    } else if (e.key === "Enter" && !e.isComposing) {
      run(shown[at]);
    } else {
      return;
    }
    e.preventDefault();
  };
  return html`<h2 id="dialog-title">${title}</h2>
    <input type="text" role="combobox" aria-label=${label} placeholder="Type a part of a name" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list"
      aria-activedescendant=${shown.length ? `palette-${at}` : nothing} autocomplete="off" spellcheck="false" @input=${type} @keydown=${press}>
    <ul id="palette-list" role="listbox" aria-label=${title}>${repeat(shown, (_, i) => i, (entry, i) => html`<li id="palette-${i}" role="option" aria-selected=${String(i === at)} @click=${() => run(entry)}>
      <span class="quiet">${entry.kind}</span><span class="found">${excerpt(entry.name, nameMost)}</span><span class="quiet detail">${entry.detail ?? ""}</span></li>`)}</ul>
    <p class="quiet">${remark(found.length, state)}</p>`;
}

/** @param {number} found @param {State} state */
function remark(found, state) {
  if (state.failed) {
    return "Some lists could not be read. Close and open the palette to try again.";
  }
  if (state.reading > 0) {
    return "Reading further names …";
  }
  return found === 0 ? "Nothing matches." : found > shownMost ? `${found - shownMost} others match. Type more to find them.` : "↑ ↓ choose, Enter opens, Esc closes";
}
