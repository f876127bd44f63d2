// Metrics in the text format of Prometheus. Pure: without a browser.

/** @typedef {{name: string, labels: Record<string, string>, value: number}} Metric */
/**
 * @typedef {object} Sample gauges, and rates since the sample before
 * @property {number} at milliseconds since 1970
 * @property {number} working
 * @property {number} waiting
 * @property {number} unread
 * @property {number} delayed
 * @property {number} allowed counter
 * @property {number} denied counter
 * @property {number} tokens counter
 * @property {number} commits counter
 * @property {number} allowedRate
 * @property {number} deniedRate
 * @property {number} tokenRate
 * @property {number} commitRate
 */

/**
 * @param {string} text
 * @returns {Metric[]}
 */
export function parseMetrics(text) {
  const metrics = [];
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match) {
      metrics.push({ name: match[1], labels: parseLabels(match[2] ?? ""), value: Number(match[3]) });
    }
  }
  return metrics;
}

/**
 * @param {string} text
 * @returns {Record<string, string>}
 */
function parseLabels(text) {
  return Object.fromEntries([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]));
}

/**
 * @param {Metric[]} metrics
 * @param {number} at
 * @param {Sample} [before]
 * @returns {Sample}
 */
export function sampleOf(metrics, at, before) {
  const sum = (/** @type {string} */ name, /** @type {Record<string, string>} */ labels = {}) => metrics
    .filter((m) => m.name === name && Object.entries(labels).every(([k, v]) => m.labels[k] === v)).reduce((total, m) => total + m.value, 0);
  const agents = (/** @type {string} */ status) => sum("rolecall_agents", { status });
  const now = {
    at, working: agents("starting") + agents("thinking") + agents("calling"), waiting: agents("waiting"),
    unread: sum("rolecall_mailbox_depth", { status: "unread" }), delayed: sum("rolecall_mailbox_depth", { status: "delayed" }),
    allowed: sum("rolecall_decisions_total", { decision: "allowed" }), denied: sum("rolecall_decisions_total", { decision: "denied" }),
    tokens: sum("rolecall_tokens_total", { kind: "input" }) + sum("rolecall_tokens_total", { kind: "output" }), commits: sum("rolecall_commits_total"),
  };
  const seconds = before ? Math.max(0.001, (at - before.at) / 1000) : 1;
  const rate = (/** @type {"allowed" | "denied" | "tokens" | "commits"} */ name) => before ? Math.max(0, now[name] - before[name]) / seconds : 0;
  return { ...now, allowedRate: rate("allowed"), deniedRate: rate("denied"), tokenRate: rate("tokens"), commitRate: rate("commits") };
}
