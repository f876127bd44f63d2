// Rows of one height in a viewport that scrolls. Only the visible ones are drawn, so that a
// list of thousands costs as much as one of fifty.

import { html } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { styled } from "./parts.js";

export const rowHeight = 32;
const spare = 12; // rows that are drawn above and below the visible ones

/**
 * @template T
 * @param {object} options
 * @param {T[]} options.items
 * @param {(item: T) => string} options.key
 * @param {(item: T, index: number) => any} options.row the template of a row; it is placed by the caller with top(index)
 * @param {any} options.head the template of the head row
 * @param {string} options.label for screen readers
 * @param {string} options.role of the list: treegrid or grid
 * @param {() => void} options.redraw
 */
export function rows({ items, key, row, head, label, role, redraw }) {
  const viewport = document.querySelector(".viewport");
  const from = Math.max(0, Math.floor((viewport?.scrollTop ?? 0) / rowHeight) - spare);
  const to = Math.min(items.length, from + Math.ceil((viewport?.clientHeight || 800) / rowHeight) + 2 * spare);
  const shown = items.slice(from, to).map((item, i) => ({ item, index: from + i }));
  return html`<div class="viewport" role=${role} aria-label=${label} aria-rowcount=${items.length + 1} @scroll=${redraw}>
    ${head}
    <div class="rows" role="rowgroup" ${styled({ height: `${items.length * rowHeight}px` })}>
      ${repeat(shown, ({ item }) => key(item), ({ item, index }) => row(item, index))}
    </div></div>`;
}

/**
 * The style of a row.
 * @param {number} index
 */
export function top(index) {
  return styled({ top: `${index * rowHeight}px` });
}

/**
 * Scrolls until a row is visible.
 * @param {number} index
 */
export function reveal(index) {
  const viewport = document.querySelector(".viewport");
  if (!viewport || index < 0) {
    return;
  }
  const above = index * rowHeight, below = above + 2 * rowHeight;
  if (above < viewport.scrollTop) {
    viewport.scrollTop = above;
  } else if (below > viewport.scrollTop + viewport.clientHeight) {
    viewport.scrollTop = below - viewport.clientHeight;
  }
}
