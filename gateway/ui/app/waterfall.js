// The agents of a task over time, as a picture and as a table.

import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { clock, distinctDurations, duration, number } from "./format.js";
import { hasEnded } from "./organization-model.js";
import { mark, quiet, table } from "./parts.js";
import { placeLink, setParams } from "./place.js";
import { openAnswers, timeScale } from "./spans.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {import("./screen.js").Place} Place */
/** @typedef {import("./spans.js").Span} Span */
/** @typedef {import("./spans.js").Scale} Scale */

const drawnMost = 200; // agents
const barsMost = 1000;
const rowsMost = 200; // of the table
const nameWidth = 140, laneHeight = 26, chartWidth = 960, axisHeight = 24; // units of the picture, about a pixel each
const letterWidth = 7; // of the texts in the picture, at most

/** @typedef {{top: number, height: number}} Shape a bar in its lane */
const shapes = /** @type {Record<string, Shape>} */ ({
  model: { top: 9, height: 8 }, tool: { top: 6, height: 14 }, failed: { top: 12, height: 8 }, denied: { top: 3, height: 20 }, wait: { top: 8, height: 10 },
});
const legend = [["model", "model"], ["tool", "call"], ["wait", "waiting"], ["failed", "failed call or turn"], ["denied", "denied call"]];

/** @param {any} data @param {Place} place @param {Page} page */
export function waterfall(data, place, page) {
  const { trace, task: t } = data;
  const agents = [...trace.agents.values()].slice(0, drawnMost);
  if (agents.length === 0) {
    return html`<p class="quiet">No agent has acted yet.</p>`;
  }
  const now = hasEnded(t.status) ? trace.end : page.now;
  const spans = t.status === "running" ? [...trace.spans, ...openAnswers(trace)] : trace.spans;
  const scale = timeScale(trace, spans, chartWidth - 8, now);
  const above = scale.folds.length ? axisHeight : 0; // for the texts of what is left out
  const lane = new Map(agents.map((a, i) => [a.id, i]));
  const bars = spans.filter((/** @type {Span} */ s) => lane.has(s.agent)).map((/** @type {Span} */ s) => barOf(s, lane.get(s.agent) ?? 0, scale, now, place));
  const bottom = laneHeight * agents.length;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Picture of the agents over time; the table below has the same"><svg class="waterfall lanes" viewBox="0 ${-above} ${nameWidth + chartWidth} ${above + bottom + axisHeight}" aria-hidden="true">
    ${scale.folds.map((f) => foldShape(f, above, bottom))}
    ${agents.map((a, i) => svg`<text x="0" y=${laneHeight * i + 17}>${a.name.slice(0, 20)}</text><line x1=${nameWidth} x2=${nameWidth + chartWidth} y1=${laneHeight * (i + 1)} y2=${laneHeight * (i + 1)}></line>`)}
    ${visibleBars(bars).map(barShape)}
    ${axis(scale, bottom)}
  </svg></div>
  ${trace.agents.size > drawnMost ? html`<p class="quiet">The first ${drawnMost} of ${number(trace.agents.size)} agents are drawn.</p>` : nothing}
  <p class="legend quiet">${legend.map(([kind, text]) => legendEntry(kind, text))}${scale.folds.length ? html`<span>∥ nothing happened, left out</span>` : nothing}</p>
  <details @toggle=${(/** @type {any} */ e) => { data.tableOpen = e.target.open; page.redraw(); }}><summary>The same as a table</summary>${data.tableOpen ? spanTable(data, spans, now) : nothing}</details>`;
}

/** @param {string} kind @param {string} text */
function legendEntry(kind, text) {
  const { height } = shapes[kind], narrow = kind === "denied";
  return html`<span><svg class="waterfall" viewBox="0 0 12 12" aria-hidden="true">${svg`<rect class=${kind} x=${narrow ? 4 : 0.5} y=${Math.max(0, 6 - height / 2)} width=${narrow ? 4 : 11} height=${Math.min(12, height)} rx="2"></rect>`}</svg>${text}</span>`;
}

/**
 * A time that is left out, with how long it was if there is room.
 * @param {{x: number, width: number, ms: number}} fold
 * @param {number} above
 * @param {number} bottom
 */
function foldShape({ x, width, ms }, above, bottom) {
  const text = `∥ ${duration(ms)} ∥`, fits = text.length * letterWidth <= width;
  return svg`<rect class="fold" x=${nameWidth + x} y="0" width=${width} height=${bottom}><title>${duration(ms)}, in which nothing happened, are left out</title></rect>
    <text class="quiet-text" x=${nameWidth + x + width / 2} y=${8 - above} dominant-baseline="middle" text-anchor="middle">${fits ? text : "∥"}</text>`;
}

/** @param {Scale} scale @param {number} bottom */
function axis(scale, bottom) {
  const texts = distinctDurations(scale.ticks.map(({ ms }) => ms));
  return scale.ticks.map(({ x, ms }, i) => {
    const text = ms ? "+" + texts[i] : "start", right = x + text.length * letterWidth > chartWidth;
    return svg`<line class="tick" x1=${nameWidth + x} x2=${nameWidth + x} y1=${bottom} y2=${bottom + 6}></line>
      <text class="quiet-text" x=${nameWidth + (right ? chartWidth : x)} y=${bottom + 18} text-anchor=${right ? "end" : "start"}>${text}</text>`;
  });
}

/** @typedef {{seq: number, kind: string, chosen: boolean, lane: number, x: number, y: number, width: number, height: number, title: string}} Bar */

/**
 * @param {Span} s
 * @param {number} lane
 * @param {Scale} scale
 * @param {number} now
 * @param {Place} place
 * @returns {Bar}
 */
function barOf(s, lane, scale, now, place) {
  const x = nameWidth + scale.at(s.start), end = Number.isNaN(s.end) ? now : s.end;
  const kind = s.outcome || s.kind, { top, height } = shapes[kind];
  return {
    seq: s.seq, kind, chosen: String(s.seq) === place.params.event, lane, x,
    width: kind === "denied" ? 4 : Math.max(2, nameWidth + scale.at(end) - x), y: laneHeight * lane + top, height,
    title: `${whatOf(s)} ${s.outcome} ${duration(end - s.start)}`,
  };
}

/**
 * Leaves out bars that others of their kind cover, so that a long task is drawn as quickly as a
 * short one. If there are still too many, it leaves out those that are close to another one.
 * @param {Bar[]} bars by time
 */
function visibleBars(bars) {
  let visible = bars;
  for (let gap = 0; gap === 0 || visible.length > barsMost; gap = 2 * gap + 1) {
    const drawnTo = new Map(); // by lane and kind
    visible = bars.filter((b) => {
      const key = `${b.lane} ${b.kind}`, end = b.x + b.width;
      if (!b.chosen && end <= (drawnTo.get(key) ?? -1) + gap) {
        return false;
      }
      drawnTo.set(key, Math.max(end, drawnTo.get(key) ?? 0));
      return true;
    });
  }
  return visible;
}

/** @param {Bar} b */
function barShape(b) {
  return svg`<rect class="${b.kind} ${b.chosen ? "chosen" : ""}" x=${b.x} y=${b.y} width=${b.width} height=${b.height} rx="2" @click=${() => setParams({ event: String(b.seq) })}><title>${b.title}</title></rect>`;
}

/** @param {any} data @param {Span[]} spans @param {number} now */
function spanTable(data, spans, now) {
  const { trace, task: t } = data;
  return html`${spans.length > rowsMost ? html`<p class="quiet">The last ${rowsMost} of ${number(spans.length)} are listed.</p>` : nothing}
    ${table("Model answers, calls and waits, oldest first", ["Agent", "What", "At", "Took", "Outcome"], spans.slice(-rowsMost).map((/** @type {Span} */ s) => ({
    href: placeLink("task", t.id, { event: String(s.seq) }),
    cells: [trace.agents.get(s.agent)?.name ?? "", whatOf(s), clock(s.start), duration((Number.isNaN(s.end) ? now : s.end) - s.start), outcomeOf(s)],
  })))}`;
}

/** @param {Span} s */
function whatOf(s) {
  if (s.kind === "wait") {
    return s.awaits === "approval" ? `waits for approval of ${s.name}` : `${s.name} waits for an answer`;
  }
  if (s.kind === "turn") {
    return "turn";
  }
  return s.kind === "tool" ? `call of ${s.name}` : `answer of ${s.name}`;
}

/** @param {Span} s */
function outcomeOf(s) {
  if (s.outcome) {
    return mark(s.outcome === "denied" ? "bad" : "wait", `${s.outcome}: ${s.code}`);
  }
  if (Number.isNaN(s.end)) {
    return s.kind === "wait" ? mark("wait", "waiting") : mark("work", "running");
  }
  return s.kind === "wait" ? quiet(s.code ?? "") : mark("good", "ok");
}
