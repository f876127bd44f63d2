// Screen: rates and gauges of the last 15 minutes, from the metrics of the process.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import uPlot from "../vendor/uplot/uPlot.esm.js";
import { RequestError } from "./api.js";
import { clock, number } from "./format.js";
import { table } from "./parts.js";
import { parseMetrics, sampleOf } from "./metrics.js";

/** @typedef {import("./screen.js").Page} Page */

const every = 2000; // milliseconds
const kept = 15 * 60 * 1000 / every; // samples

/** @typedef {import("./metrics.js").Sample} Sample */
const charts = /** @type {{title: string, series: [string, keyof Sample][]}[]} */ ([
  { title: "Calls in a second", series: [["allowed", "allowedRate"], ["denied", "deniedRate"]] },
  { title: "Agents", series: [["at work", "working"], ["waiting", "waiting"]] },
  { title: "Messages that wait", series: [["unread", "unread"], ["delayed", "delayed"]] },
  { title: "Tokens in a second", series: [["tokens", "tokenRate"]] },
  { title: "Commits in a second", series: [["commits", "commitRate"]] },
]);

/** The samples since the page was opened. They stay when another screen is shown. */
const samples = /** @type {Sample[]} */ ([]);
/** @type {Map<string, any>} */
const plots = new Map();

/** @type {import("./screen.js").Screen} */
export const topScreen = {
  id: "top", title: "Top", key: "p", scope: "operator",
  loadKey: () => "",
  async load(_, signal, page) {
    const text = await readMetrics(signal);
    const last = samples.at(-1);
    if (!last || Date.now() - last.at >= every / 2) {
      samples.push(sampleOf(parseMetrics(text), Date.now(), last));
      samples.splice(0, samples.length - kept);
    }
    setTimeout(() => !signal.aborted && location.hash.startsWith("#/top") && page.reload(), every);
    return { samples };
  },
  render(data) {
    requestAnimationFrame(drawPlots);
    const now = data.samples.at(-1);
    return html`<div class="cards">${charts.map((chart) => html`<section class="chart"><h2>${chart.title}</h2>
      <div class="plot" data-plot=${chart.title} aria-hidden="true"></div>
      ${table(chart.title, ["Series", "Now"], chart.series.map(([name, field]) => ({ cells: [name, number(Math.round(10 * Number(now[field])) / 10)] })))}</section>`)}</div>
      ${data.samples.length < 2 ? html`<p class="quiet">Rates are shown from the second sample on.</p>` : nothing}`;
  },
};

/** @param {AbortSignal} signal */
async function readMetrics(signal) {
  const response = await fetch("metrics", { credentials: "same-origin", signal }).catch((cause) => {
    if (signal.aborted) {
      throw cause;
    }
    throw new RequestError(0, "no_answer", "The gateway did not answer.");
  });
  if (!response.ok) {
    throw new RequestError(response.status, "no_metrics", "The process serves no metrics.");
  }
  return response.text();
}

/** Draws the pictures into their places. */
function drawPlots() {
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-plot]"))) {
    const chart = charts.find((c) => c.title === place.dataset.plot);
    if (!chart) {
      continue;
    }
    const data = [samples.map((s) => s.at / 1000), ...chart.series.map(([, field]) => samples.map((s) => Number(s[field])))];
    const old = plots.get(chart.title);
    if (old?.root.isConnected) {
      old.setData(data);
      continue;
    }
    plots.set(chart.title, new uPlot(plotOptions(chart, place.clientWidth), /** @type {any} */ (data), place));
  }
}

/**
 * Returns a colour of the theme. A chart asks for it whenever it is drawn.
 * @param {string} name of a property of the style sheet
 */
function colour(name) {
  return () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @param {{series: [string, any][]}} chart @param {number} width */
function plotOptions(chart, width) {
  const strokes = [colour("--work"), colour("--bad")], axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 } };
  return {
    width: Math.max(200, width), height: 160, tzDate: (/** @type {number} */ at) => uPlot.tzDate(new Date(1000 * at), "Etc/UTC"), legend: { show: false }, cursor: { show: false },
    scales: { x: { range: () => /** @type {[number, number]} */ ([Date.now() / 1000 - kept * every / 1000, Date.now() / 1000]) }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ max) => /** @type {[number, number]} */ ([0, Math.max(1, max)]) } },
    series: [{}, ...chart.series.map(([label], i) => ({ label, points: { show: false }, stroke: strokes[i], width: 2, dash: i === 1 ? [6, 4] : undefined }))],
    axes: [{ ...axis, values: (/** @type {any} */ _, /** @type {number[]} */ times) => times.map((at) => clock(1000 * at).slice(0, 5)) }, { ...axis, size: 48 }],
  };
}
