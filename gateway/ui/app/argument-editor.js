// The editor of the arguments of a call that waits: a field for each, or all of them as JSON.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { fieldsOf, problemOf, textOf } from "./argument-fields.js";
import { sameJSON } from "./format.js";
import { difference, mark, quiet } from "./parts.js";

/** @typedef {import("./argument-fields.js").Field} Field */
/** @typedef {{fields?: Field[], text: string}} ArgumentDraft without fields, text has all arguments */

const shortText = 60; // characters of a text that has one line
const rowsMost = 12; // of a field

/**
 * @param {string} text the arguments, indented
 * @returns {ArgumentDraft}
 */
export function newArgumentDraft(text) {
  const fields = fieldsOf(text);
  return { fields: fields?.length ? fields : undefined, text };
}

/**
 * Returns the edited arguments as JSON, undefined if they are no JSON object.
 * @param {ArgumentDraft} draft
 */
export function draftText(draft) {
  const text = draft.fields ? textOf(draft.fields) : draft.text;
  return text !== undefined && isObject(text) ? text : undefined;
}

/** @param {string} text */
function isObject(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value);
  } catch {
    return false;
  }
}

/**
 * @param {string} text the arguments before
 * @param {ArgumentDraft} draft
 * @param {() => void} redraw
 */
export function argumentEditor(text, draft, redraw) {
  const now = draftText(draft);
  return html`${draft.fields ? draft.fields.map((f) => fieldEditor(f, redraw)) : jsonEditor(draft, redraw)}
    ${draft.fields ? html`<p><button type="button" ?disabled=${now === undefined} @click=${() => { Object.assign(draft, { fields: undefined, text: now }); redraw(); }}>Edit as JSON</button></p>` : nothing}
    ${now === undefined ? nothing : changes(text, now)}`;
}

/** @param {string} before @param {string} now */
function changes(before, now) {
  return isChanged(before, now) ? html`<p class="quiet">The schema and the rules of the role are checked again. The agent is told of the change.</p>${argumentChange(before, now)}`
    : quiet("Nothing is changed yet.");
}

/**
 * Reports whether an edit changes a value. Spaces and line breaks between values do not count.
 * @param {string} before
 * @param {string} now
 */
export function isChanged(before, now) {
  return sameJSON(now) !== before;
}

/**
 * The lines of arguments that an edit removes and adds.
 * @param {string} before
 * @param {string} now
 */
export function argumentChange(before, now) {
  return difference(before, sameJSON(now));
}

/** @param {Field} f @param {() => void} redraw */
function fieldEditor(f, redraw) {
  const set = (/** @type {any} */ e) => {
    f.now = e.target.value;
    redraw();
  };
  const problem = problemOf(f);
  return html`<label class="field"><span>${f.key.slice(1, -1)}${f.kind === "text" ? nothing : quiet(" " + { number: "number", boolean: "yes or no", json: "JSON" }[f.kind])}</span>${control(f, set)}</label>
    ${problem ? html`<p role="alert">${mark("bad", problem)}</p>` : nothing}`;
}

/** @param {Field} f @param {(e: any) => void} set */
function control(f, set) {
  if (f.kind === "boolean") {
    return html`<select name="args" @change=${set}>${["true", "false"].map((v) => html`<option ?selected=${f.now === v}>${v}</option>`)}</select>`;
  }
  if (f.kind === "json" || f.was.length > shortText || f.was.includes("\n")) {
    return html`<textarea name="args" class=${f.kind === "json" ? "code" : ""} rows=${rowsOf(f.now)} .value=${f.now} @input=${set}></textarea>`;
  }
  return html`<input name="args" autocomplete="off" inputmode=${f.kind === "number" ? "decimal" : "text"} .value=${f.now} @input=${set}>`;
}

/** @param {ArgumentDraft} draft @param {() => void} redraw */
function jsonEditor(draft, redraw) {
  return html`<label class="field"><span class="hidden">Arguments as JSON</span><textarea name="args" class="code" rows=${rowsOf(draft.text)} .value=${draft.text} @input=${(/** @type {any} */ e) => { draft.text = e.target.value; redraw(); }}></textarea></label>
    ${isObject(draft.text) ? nothing : html`<p role="alert">${mark("bad", "This is no JSON object.")}</p>`}`;
}

/** @param {string} text */
function rowsOf(text) {
  return Math.min(rowsMost, text.split("\n").length + 1);
}
