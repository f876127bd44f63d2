// Pieces that several screens show.

import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { directive, Directive } from "../vendor/lit-html/directive.js";
import { ago, excerpt, shortId, utc } from "./format.js";
import { lineDiff } from "./line-diff.js";

/** @typedef {import("./api.js").RequestError} RequestError */

const longWord = 28; // characters of a word of a command line

/** Sets style properties of an element. The page's policy rules out style attributes. */
class StyleDirective extends Directive {
  /** @param {Record<string, string>} _ */
  render(_) {
    return nothing;
  }

  /**
   * @param {any} part
   * @param {[Record<string, string>]} values
   */
  update(part, [values]) {
    for (const [name, value] of Object.entries(values)) {
      part.element.style.setProperty(name, value);
    }
    return nothing;
  }
}
export const styled = directive(StyleDirective);

/** Says by attributes of an element whether more of its content is on the right. */
class EdgeDirective extends Directive {
  /** @type {ResizeObserver | undefined} */
  observer;

  render() {
    return nothing;
  }

  /** @param {any} part */
  update({ element }) {
    if (!this.observer) {
      const look = () => element.toggleAttribute("data-more", element.scrollLeft + element.clientWidth < element.scrollWidth - 1);
      element.addEventListener("scroll", look, { passive: true });
      this.observer = new ResizeObserver(look);
      this.observer.observe(element);
      setTimeout(() => element.firstElementChild && this.observer?.observe(element.firstElementChild));
    }
    return nothing;
  }
}
export const scrollEdges = directive(EdgeDirective);

/** Says something to screen readers, such as the number of rows that a filter left. */
export function announce(/** @type {string} */ text) {
  const region = document.getElementById("announcements");
  if (region) {
    region.textContent = text;
  }
}

/**
 * A mark with a sign and a word, so that nothing is told by colour alone.
 * @param {"good" | "bad" | "wait" | "work" | "off" | "unknown" | "plus" | "minus" | "approval" | "note"} kind
 * @param {string} text
 */
export function mark(kind, text) {
  const sign = { good: "✓", bad: "✕", wait: "◷", work: "▸", off: "○", unknown: "?", plus: "+", minus: "−", approval: "◇", note: "!" }[kind];
  return html`<span class="mark ${kind}"><span class="sign" aria-hidden="true">${sign}</span>${text}</span>`;
}

/** The kinds of marks for statuses of tasks and agents. */
const statusKinds = /** @type {Record<string, "good" | "bad" | "wait" | "work" | "off">} */ ({
  done: "good", active: "good", accepted: "good", ok: "good", approved: "good", used: "good",
  failed: "bad", denied: "bad", damaged: "bad", expired: "bad",
  waiting: "wait", paused: "wait", interrupted: "wait", quarantined: "wait", pending: "wait", closed: "wait",
  running: "work", thinking: "work", calling: "work", starting: "work",
  cancelled: "off", terminated: "off", finished: "off", deleted: "off", void: "off",
});

/** @param {string} status */
export function statusMark(status) {
  return mark(statusKinds[status] ?? "unknown", status);
}

/**
 * A time, relative, with the absolute one as its title.
 * @param {string | undefined} at RFC 3339
 * @param {number} now
 */
export function when(at, now) {
  return at ? html`<time datetime=${at} title="${utc(at)} UTC">${ago(Date.parse(at), now)}</time>` : nothing;
}

/**
 * An id, shortened, with a button that copies it.
 * @param {string} id
 */
export function idChip(id) {
  return html`<span class="id"><code title=${id}>${shortId(id)}</code>${copyButton(id, "Copy the id")}</span>`;
}

/** Two sheets of paper. */
const copyIcon = html`<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">${svg`<path d="M4.5 4.5v-3h8v8h-3M1.5 4.5h8v8h-8z" fill="none" stroke="currentColor" stroke-width="1.2"></path>`}</svg>`;

/**
 * @param {string} text
 * @param {string} label
 */
export function copyButton(text, label) {
  return html`<button type="button" class="copy" aria-label=${label} title=${label} @click=${(/** @type {Event} */ e) => copy(e, text)}>${copyIcon}</button>`;
}

/**
 * @param {Event} e
 * @param {string} text
 */
async function copy(e, text) {
  e.stopPropagation();
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied");
  } catch {
    announce("The browser did not allow copying");
  }
}

/**
 * A command line that does the same as a control.
 * @param {string} text
 */
export function commandLine(text) {
  return html`<p class="command"><span class="label">Command</span><code>${text.split(" ").map(commandWord)}</code>${copyButton(text, "Copy the command")}</p>`;
}

/**
 * A word of a command line, in which no line breaks unless it is long.
 * @param {string} word
 * @param {number} i its place
 */
function commandWord(word, i) {
  return html`${i ? " " : ""}<span class=${word.length > longWord ? "" : "fixed"}>${word}</span>`;
}

/**
 * A JSON value as text.
 * @param {any} value
 * @param {number} [most] characters
 */
export function json(value, most = 20_000) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  return html`<pre class="json" tabindex="0">${text.length > most ? text.slice(0, most) + "\n…" : text}</pre>`;
}

/**
 * What stands in place of data that is not there.
 * @param {string} text what would be here
 * @param {string} [command] that makes one
 */
export function empty(text, command) {
  return html`<div class="empty"><p>${text}</p>${command ? commandLine(command) : nothing}</div>`;
}

/** Rows in the shape of the data that is loading. */
export function skeleton() {
  return html`<div class="skeleton" role="status" aria-label="Loading">${Array.from({ length: 8 }, () => html`<div class="line"></div>`)}</div>`;
}

/**
 * An error, with what to do.
 * @param {RequestError} error
 * @param {() => void} retry
 */
export function failure(error, retry) {
  return html`<div class="failure" role="alert">
    <p>${mark("bad", error.message)}</p>
    <p class="quiet"><code>${error.code}</code> <button type="button" @click=${retry}>Try again</button></p>
  </div>`;
}

/** @param {string} text */
export function quiet(text) {
  return html`<span class="quiet">${text}</span>`;
}

/**
 * A list of names, of which only some are shown.
 * @param {string[]} names
 * @param {number} most
 */
export function names(names, most) {
  if (names.length === 0) {
    return quiet("none");
  }
  const rest = names.length - most;
  return html`${names.slice(0, most).map((n) => html`<code class="name">${n}</code> `)}${rest > 0 ? quiet(`and ${rest} more`) : nothing}`;
}

/**
 * A table with a caption for screen readers. Cells may be templates. Rows with keys keep their
 * elements when others come before them.
 * @param {string} caption
 * @param {string[]} heads
 * @param {{cells: any[], href?: string, current?: boolean, key?: string | number, title?: string}[]} rows
 */
export function table(caption, heads, rows) {
  return html`<div class="scroll"><table class=${heads.length > 2 ? "stacks" : ""}>
    <caption class="hidden">${caption}</caption>
    <thead><tr>${heads.map((h) => html`<th scope="col">${h}</th>`)}</tr></thead>
    <tbody>${repeat(rows, (row, i) => row.key ?? i, (row) => html`<tr class=${row.current ? "current" : ""} title=${row.title ?? nothing} data-row>${row.cells.map((cell, i) =>
      html`<td data-head=${heads[i]}>${i === 0 && row.href ? html`<a href=${row.href} aria-current=${row.current ? "true" : nothing}>${cell}</a>` : cell}</td>`)}</tr>`)}
    </tbody></table></div>`;
}

/**
 * A list of terms and their values. Values that are nothing, "" or undefined are left out.
 * @param {[string, any][]} pairs
 */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== nothing && value !== "" && value !== undefined && value !== null);
  return html`<dl class="facts">${shown.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/**
 * A text field that filters a list while a user types.
 * @param {string} label
 * @param {string} value
 * @param {(text: string) => void} set
 */
export function filterField(label, value, set) {
  return html`<label class="filter"><span class="hidden">${label}</span>
    <input type="search" data-filter placeholder=${label} .value=${value} @input=${(/** @type {any} */ e) => set(e.target.value)}></label>`;
}

/**
 * @param {string} text
 * @param {number} [most]
 */
export function oneLine(text, most = 120) {
  return html`<span title=${text.length > most ? text.slice(0, 2000) : nothing}>${excerpt(text, most)}</span>`;
}

/**
 * The lines of two texts, with what was added and removed.
 * @param {string} before
 * @param {string} after
 */
export function difference(before, after) {
  return html`<pre class="json" tabindex="0">${lineDiff(before, after).map((l) => html`<span class=${l.kind}>${l.kind === "added" ? "+ " : l.kind === "removed" ? "- " : "  "}${l.text}\n</span>`)}</pre>`;
}
