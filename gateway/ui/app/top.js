// Screen: rates and gauges of the last 15 minutes, from the metrics of the process.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import uPlot from "../vendor/uplot/uPlot.esm.js";
import { RequestError } from "./api.js";
import { clock, number } from "./format.js";
import { quiet, table } from "./parts.js";
import { parseMetrics, sampleOf } from "./metrics.js";

/** @typedef {import("./screen.js").Page} Page */

const every = 2000; // milliseconds
const most = 15 * 60 * 1000; // milliseconds that are kept
const least = 60 * 1000; // milliseconds that a picture shows at least

/** @typedef {import("./metrics.js").Sample} Sample */
const charts = /** @type {{title: string, series: [string, keyof Sample][]}[]} */ ([
  { title: "Calls in a second", series: [["allowed", "allowedRate"], ["denied", "deniedRate"]] },
  { title: "Agents", series: [["at work", "working"], ["waiting", "waiting"]] },
  { title: "Messages that wait", series: [["unread", "unread"], ["delayed", "delayed"]] },
  { title: "Tokens in a second", series: [["tokens", "tokenRate"]] },
  { title: "Commits to the record in a second", series: [["commits", "commitRate"]] },
]);

/** The samples since the page was opened. They stay when another screen is shown. */
const samples = /** @type {Sample[]} */ ([]);
/** @type {Map<string, any>} */
const plots = new Map();

/** @type {import("./screen.js").Screen} */
export const topScreen = {
  id: "top", title: "Rates", key: "p", scope: "operator",
  loadKey: () => "",
  async load(_, signal, page) {
    try {
      addSample(await readMetrics(signal));
    } finally {
      if (!signal.aborted) {
        sampleLater(page); // also after an error: the gateway may answer again
      }
    }
    return { samples };
  },
  render(data) {
    requestAnimationFrame(drawPlots);
    const now = data.samples.at(-1), hasHistory = data.samples.length > 1;
    return html`${hasHistory ? nothing : html`<p class="quiet">No history yet: a point is added every ${every / 1000} seconds while this page is open.</p>`}
    <div class="cards">${charts.map((chart) => html`<section class="chart"><h2>${chart.title}</h2>
      ${hasHistory ? html`<div class="plot" data-plot=${chart.title} aria-hidden="true"></div>` : nothing}
      ${table(chart.title, ["Series", "Now"], chart.series.map(([name, field], i) => ({ cells: [hasHistory ? seriesName(name, i, chart.series.length) : name, number(Math.round(10 * Number(now[field])) / 10)] })))}</section>`)}</div>`;
  },
};

/** @param {string} name @param {number} i its place @param {number} all */
function seriesName(name, i, all) {
  return html`${name}${all > 1 ? html` ${quiet(i ? "dashed" : "solid")}` : nothing}`;
}

/** @param {string} metrics */
function addSample(metrics) {
  const last = samples.at(-1);
  if (!last || Date.now() - last.at >= every / 2) {
    samples.push(sampleOf(parseMetrics(metrics), Date.now(), last));
    samples.splice(0, samples.length - most / every);
  }
}

/** @type {number | undefined} */
let nextSample;

/** Takes another sample soon, while the screen is shown. @param {Page} page */
function sampleLater(page) {
  clearTimeout(nextSample);
  nextSample = setTimeout(() => page.session && location.hash.startsWith("#/top") && page.reload(), every);
}

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
  const range = () => {
    const now = Date.now(), first = samples[0]?.at ?? now;
    return /** @type {[number, number]} */ ([Math.max(now - most, Math.min(first, now - least)) / 1000, now / 1000]);
  };
  return {
    width: Math.max(200, width), height: 160, tzDate: (/** @type {number} */ at) => uPlot.tzDate(new Date(1000 * at), "Etc/UTC"), legend: { show: false }, cursor: { show: false },
    scales: { x: { range }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ max) => /** @type {[number, number]} */ ([0, Math.max(1, max)]) } },
    series: [{}, ...chart.series.map(([label], i) => ({ label, points: { show: false }, stroke: strokes[i], width: 2, dash: i === 1 ? [6, 4] : undefined }))],
    axes: [{ ...axis, space: 72, values: (/** @type {any} */ _, /** @type {number[]} */ times) => times.map((at) => clock(1000 * at)) }, { ...axis, size: 48 }],
  };
}
