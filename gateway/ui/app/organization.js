// Screen: who is there, what they do, and what was denied.

import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { hierarchy, tree as tidyTree } from "../vendor/d3-hierarchy/d3-hierarchy.min.mjs";
import { get, list, send } from "./api.js";
import { addDenial, addFailedTurn, faultMarks, loadDenials, loadFailedTurns } from "./denials.js";
import { ask, field } from "./dialog.js";
import { command, count, excerpt, shortId } from "./format.js";
import { addApprovals, addQuestions, addRolePauses, applyEvent, childrenOf, hasEnded, newTree, tasksShown, visibleRows, waitOf } from "./organization-model.js";
import { commandLine, facts, filterField, idChip, mark, names, oneLine, quiet, statusMark, styled, when } from "./parts.js";
import { pause } from "./pause.js";
import { callerName } from "./people.js";
import { currentPlace, goTo, placeLink, roleLink, setParams } from "./place.js";
import { openQuestions } from "./questions.js";
import { reveal, rows, top } from "./rows.js";

/** @typedef {import("./organization-model.js").Row} Row */
/** @typedef {import("./organization-model.js").Agent} Agent */
/** @typedef {import("./organization-model.js").Task} Task */

const drawnMost = 500; // agents in the picture
const recently = 60_000; // milliseconds for which a denial is marked

/** What is open and folded is kept while the page is open. */
const view = { closed: new Set(), opened: new Set(), unfolded: new Set(), nameOf: callerName };

/** @type {import("./screen.js").Screen} */
export const organization = {
  id: "organization", title: "Organization", key: "o", scope: "operator",
  loadKey: () => "",
  async load(_, signal) {
    const [page, { all, roles }, waiting] = await Promise.all([
      list("api/v1/tasks", { agents: true }, tasksShown, signal), get("api/v1/pause", {}, signal), list("api/v1/approvals", {}, 1000, signal),
    ]), [{ denials }, failedTurns] = await Promise.all([loadDenials(signal), loadFailedTurns(signal)]);
    const tree = newTree(page.items, page.more);
    addRolePauses(tree, new Set(roles.map((/** @type {any} */ r) => r.name)));
    addApprovals(tree, waiting.items);
    addQuestions(tree, await openQuestions(tree, signal));
    for (const task of tree.tasks.values()) { // with one task, what it did is the first thing to see
      if (tree.tasks.size === 1) {
        view.opened.add(task.id);
      }
    }
    return { tree, denials, failedTurns, paused: all };
  },
  fold(data, e) {
    if (e.roleId && (e.type === "paused" || e.type === "resumed")) {
      return "reload";
    }
    if (e.all && (e.type === "paused" || e.type === "resumed")) {
      data.paused = e.type === "paused" ? { by: e.by, reason: e.reason, at: e.at } : undefined;
      return true;
    }
    addDenial(data.denials, e);
    addFailedTurn(data.failedTurns, e);
    return applyEvent(data.tree, e);
  },
  isEmpty: (data) => data.tree.tasks.size === 0,
  empty: () => ({ text: "No task was started yet. The tasks and their agents are listed here.", command: command("run", "-f", "org.yaml", "Remember the milk") }),
  tools: (data, place, page) => html`
    ${data.paused ? html`<button type="button" @click=${() => pause({ all: true }, "resume", "the organization", page)}>Resume the organization</button>`
      : html`<button type="button" class="danger" @click=${() => pause({ all: true }, "pause", "the organization", page)}>Pause the organization</button>`}
    <label class="check"><input type="checkbox" .checked=${place.params.live === "1"} @change=${(/** @type {any} */ e) => setParams({ live: e.target.checked ? "1" : "" })}>Only running</label>
    ${filterField("Filter agents and tasks", place.params.filter ?? "", (filter) => setParams({ filter }))}
    <div class="segments" role="group" aria-label="Form">
      ${["List", "Picture"].map((form) => html`<button type="button" aria-pressed=${String((place.params.form ?? "List") === form)} @click=${() => setParams({ form: form === "List" ? "" : form })}>${form}</button>`)}
    </div>
    <a class="button primary" href=${placeLink("start")}>Give a task</a>`,
  render(data, place, page) {
    const list = visibleRows(data.tree, { ...view, filter: place.params.filter ?? "", live: place.params.live === "1" });
    const chosen = list.find((row) => row.id === place.id) ?? findRow(data.tree, place.id);
    return html`${data.paused ? html`<div class="notice" role="status">${mark("bad", "The organization is paused.")} By ${callerName(data.paused.by ?? "")}, ${when(data.paused.at, page.now)}${data.paused.reason ? `: ${data.paused.reason}` : ""}</div>` : nothing}
    <div class="split">
      <div>${place.params.form === "Picture" ? picture(data.tree, chosen, page) : treegrid(list, data, place, page)}
        ${data.tree.more ? html`<p class="quiet">The ${tasksShown} newest tasks are shown.</p>` : nothing}</div>
      ${details(chosen, page)}</div>`;
  },
  keydown(e, data, place, page) {
    const list = visibleRows(data.tree, { ...view, filter: place.params.filter ?? "", live: place.params.live === "1" });
    return moveBy(e, list, place, page);
  },
};

/**
 * @param {any} tree
 * @param {string} id
 * @returns {Row | undefined}
 */
function findRow(tree, id) {
  const agent = tree.agents.get(id), task = tree.tasks.get(agent?.task ?? id);
  return task && { id, task, agent, depth: 0, children: 0, open: false };
}

/**
 * @param {Row[]} list
 * @param {any} data
 * @param {import("./place.js").Place} place
 * @param {import("./screen.js").Page} page
 */
function treegrid(list, data, place, page) {
  if (list.length === 0) {
    return html`<p class="quiet">Nothing matches the filter.</p>`;
  }
  const head = html`<div class="row head org" role="row">${["Name", "Status", "Details", "State", "Started"].map((h) => html`<div role="columnheader">${h}</div>`)}</div>`;
  return rows({
    items: list, key: (row) => row.id, head, role: "treegrid", label: "Tasks and agents", redraw: page.redraw,
    row: (row, index) => row.more ? moreRow(row, index, page) : row.agent ? agentRow(row, row.agent, index, place, page) : taskRow(row, data, index, place, page),
  });
}

/**
 * @param {Row} row
 * @param {number} index
 * @param {import("./place.js").Place} place
 * @param {any} cells
 */
function rowFrame(row, index, place, cells) {
  const current = row.id === place.id;
  return html`<div class="row org ${current ? "current" : ""}" role="row" data-row aria-level=${row.depth + 1} aria-rowindex=${index + 2}
    aria-expanded=${row.children ? String(row.open) : nothing} aria-selected=${String(current)} tabindex=${current ? 0 : -1}
    @click=${() => goTo("organization", row.id, place.params)} ${top(index)}>${cells}</div>`;
}

/** @param {Row} row @param {any} data @param {number} index @param {import("./place.js").Place} place @param {import("./screen.js").Page} page */
function taskRow(row, data, index, place, page) {
  const { task } = row, origin = `by ${callerName(task.caller)}, ${count(task.agents.length, "agent")}`;
  const marks = faultMarks(data.failedTurns.get(row.id)?.size, data.denials.get(row.id)?.size);
  return rowFrame(row, index, place, html`
    <div role="gridcell" class="person">${twist(row, page)}<strong>${oneLine(task.text, 80)}</strong></div>
    <div role="gridcell">${statusMark(task.status)}</div>
    <div role="gridcell" class="quiet" title=${marks.length ? origin : nothing}>${marks}<span>${marks.length ? "· " : ""}${origin}</span></div>
    <div role="gridcell"></div>
    <div role="gridcell">${when(task.createdAt, page.now)}</div>`);
}

/** @param {Row} row @param {Agent} agent @param {number} index @param {import("./place.js").Place} place @param {import("./screen.js").Page} page */
function agentRow(row, agent, index, place, page) {
  return rowFrame(row, index, place, html`
    <div role="gridcell" class="person" ${styled({ "padding-left": `${16 * row.depth}px` })}>${twist(row, page)}<span>${agent.name || shortId(agent.id)}</span>${agent.name?.startsWith(agent.role) ? nothing : quiet(agent.role)}</div>
    <div role="gridcell">${statusMark(agent.status)}</div>
    <div role="gridcell">${doing(agent, row.task, page.now)}</div>
    <div role="gridcell" class="quiet">${agent.state === "undefined" ? "" : agent.state}</div>
    <div role="gridcell">${when(agent.createdAt, page.now)}</div>`);
}

/** @param {Row} row @param {number} index @param {import("./screen.js").Page} page */
function moreRow(row, index, page) {
  return html`<div class="row org" role="row" aria-level=${row.depth + 1} aria-rowindex=${index + 2} ${top(index)}><div role="gridcell" ${styled({ "padding-left": `${16 * row.depth + 24}px` })}>
    <button type="button" @click=${() => { view.unfolded.add(row.id.slice(0, -1)); page.redraw(); }}>Show ${count(row.more ?? 0, "other agent")}</button></div></div>`;
}

/** @param {Agent} agent @param {Task} task @param {number} now */
function doing(agent, task, now) {
  if (agent.deniedAt && now - agent.deniedAt < recently) {
    return mark("bad", `${agent.deniedTool} denied`);
  }
  const wait = waitOf(agent, task);
  if (wait) {
    return wait === "a message" ? quiet("for a message") : html`<span title="waits for ${wait}">${mark("wait", `for ${wait}`)}</span>`;
  }
  return agent.tool ? html`calls <code>${agent.tool}</code>` : nothing;
}

/** @param {Row} row @param {import("./screen.js").Page} page */
function twist(row, page) {
  if (!row.children) {
    return html`<span class="twist"></span>`;
  }
  return html`<button type="button" class="twist" tabindex="-1" aria-label=${row.open ? "Fold" : "Unfold"} @click=${(/** @type {Event} */ e) => { e.stopPropagation(); toggle(row); page.redraw(); }}>${row.open ? "▾" : "▸"}</button>`;
}

/** @param {Row} row */
function toggle(row) {
  const ended = !row.agent && hasEnded(row.task.status);
  if (ended) {
    view.opened.has(row.id) ? view.opened.delete(row.id) : view.opened.add(row.id);
  } else {
    view.closed.has(row.id) ? view.closed.delete(row.id) : view.closed.add(row.id);
  }
}

/**
 * Moves the selection as in a tree grid.
 * @param {KeyboardEvent} e
 * @param {Row[]} list
 * @param {import("./place.js").Place} place
 * @param {import("./screen.js").Page} page
 * @returns {boolean} whether the key was used
 */
function moveBy(e, list, place, page) {
  const at = list.findIndex((row) => row.id === place.id), row = list[at];
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[e.key];
  if (step !== undefined) {
    const next = Math.min(list.length - 1, Math.max(0, at + step));
    goTo("organization", list[next]?.id, place.params);
    page.afterDraw(() => {
      reveal(next);
      /** @type {HTMLElement | null} */ (document.querySelector(".row.current"))?.focus();
    });
    return true;
  }
  if (row && (e.key === "ArrowRight" && !row.open || e.key === "ArrowLeft" && row.open) && row.children) {
    toggle(row);
    page.redraw();
    return true;
  }
  if (row && e.key === "Enter") {
    goTo("task", row.task.id);
    return true;
  }
  const action = row?.agent && { m: message, t: terminate, a: abort }[e.key];
  if (action) {
    action(/** @type {Agent} */ (row.agent), page);
    return true;
  }
  return false;
}

/** @param {Row | undefined} row @param {import("./screen.js").Page} page */
function details(row, page) {
  if (!row) {
    return html`<aside class="panel" aria-label="Details"><p class="quiet">Choose a task or an agent. The arrow keys move; Enter opens the task.</p></aside>`;
  }
  return html`<aside class="panel" aria-label="Details">${row.agent ? agentDetails(row.agent, row.task, page) : taskDetails(row.task, page)}</aside>`;
}

/** @param {Task} task @param {import("./screen.js").Page} page */
function taskDetails(task, page) {
  return html`<h2>${excerpt(task.text, 160)}</h2>
    ${facts([["Status", statusMark(task.status)], ["Caller", callerName(task.caller)], ["Agents", task.agents.length], ["Started", when(task.createdAt, page.now)], ["Id", idChip(task.id)]])}
    <div class="actions"><a class="button primary" href=${placeLink("task", task.id)}>Open the task</a></div>
    ${commandLine(command("task", "show", task.id))}`;
}

/** What the gateway says of an agent, by its id. It is read when the agent is chosen. */
const known = /** @type {Map<string, any>} */ (new Map());

/** @param {string} id @param {import("./screen.js").Page} page */
async function learn(id, page) {
  known.set(id, known.get(id) ?? {});
  try {
    known.set(id, await get("api/v1/agents/" + encodeURIComponent(id)));
  } catch (error) {
    known.set(id, { error });
  }
  page.redraw();
}

/** @param {Agent} agent @param {Task} task @param {import("./screen.js").Page} page */
function agentDetails(agent, task, page) {
  const more = known.get(agent.id);
  if (!more) {
    known.clear(); // only the chosen one is kept
    learn(agent.id, page);
  }
  const over = agent.status === "terminated" || agent.status === "finished";
  return html`<h2>${agent.name || agent.role}</h2>
    ${facts([
      ["Role", html`<a href=${roleLink(agent.role)}>${agent.role}</a>`], ["Status", statusMark(agent.status)], ["Now", doing(agent, task, page.now)],
      ["State", agent.state === "undefined" ? undefined : agent.state], ["Spawned", when(agent.createdAt, page.now)], ["Id", idChip(agent.id)],
      ["Calls", more?.calls && html`${more.calls.total}${more.calls.denied ? html`, ${mark("bad", `${more.calls.denied} denied`)}` : nothing}`],
      ["Objective", more?.taskBrief?.objective], ["May call", more?.tools && (over ? quiet("nothing more") : names(more.tools, 40))],
    ])}
    <div class="actions">
      <a class="button" href=${placeLink("record", "", { agent: agent.id })}>Its record</a>
      ${over ? nothing : html`<button type="button" @click=${() => message(agent, page)}>Send a message <kbd>m</kbd></button>
        <button type="button" @click=${() => abort(agent, page)}>Abort the turn <kbd>a</kbd></button>
        <button type="button" class="danger" @click=${() => terminate(agent, page)}>Terminate <kbd>t</kbd></button>`}
    </div>
    ${commandLine(command("agent", "show", agent.id))}`;
}

/** @param {Agent} agent @param {import("./screen.js").Page} page */
async function message(agent, page) {
  await ask({
    title: `Send a message to ${agent.name || agent.role}`, confirm: "Send", body: field("Message", "text", { rows: 4, required: true }),
    command: ({ text }) => command("agent", "send", agent.id, text ?? ""),
    run: ({ text }) => send("POST", `api/v1/agents/${encodeURIComponent(agent.id)}/messages`, { text }),
  });
  page.redraw();
}

/** @param {Agent} agent @param {import("./screen.js").Page} page */
async function terminate(agent, page) {
  await ask({
    title: `Terminate ${agent.name || agent.role} and all agents that it has spawned`, confirm: "Terminate", danger: true, body: field("Reason (optional)", "reason"),
    command: ({ reason }) => command("agent", "terminate", agent.id, ...(reason ? ["--reason", reason] : [])),
    run: ({ reason }) => send("DELETE", `api/v1/agents/${encodeURIComponent(agent.id)}` + (reason ? `?reason=${encodeURIComponent(reason)}` : "")),
  });
  page.redraw();
}

/** @param {Agent} agent @param {import("./screen.js").Page} page */
async function abort(agent, page) {
  await ask({
    title: `Abort the turn of ${agent.name || agent.role}`, confirm: "Abort", danger: true, body: html`<p>It stops at its next step and waits for a message.</p>`,
    command: () => command("agent", "abort", agent.id), run: () => send("POST", `api/v1/agents/${encodeURIComponent(agent.id)}/abort`),
  });
  page.redraw();
}

/**
 * The agents of one task as a tree.
 * @param {any} tree
 * @param {Row | undefined} chosen
 * @param {import("./screen.js").Page} page
 */
function picture(tree, chosen, page) {
  const task = chosen?.task ?? tree.tasks.values().next().value;
  const children = childrenOf(task);
  let left = drawnMost;
  /** @type {(agent: Agent) => any} */
  const node = (agent) => ({ agent, children: (children.get(agent.id) ?? []).filter(() => left-- > 0).map(node) });
  const root = hierarchy({ agent: undefined, children: (children.get("") ?? []).map(node) });
  tidyTree().nodeSize([24, 190])(/** @type {any} */ (root));
  const all = /** @type {any[]} */ (root.descendants());
  const low = Math.min(...all.map((n) => n.x)), high = Math.max(...all.map((n) => n.x)), deep = Math.max(...all.map((n) => n.y));
  const width = deep + 220, height = high - low + 48;
  return html`${taskChooser(tree, task)}${left < 0 ? html`<p class="quiet">Only ${drawnMost} agents are drawn.</p>` : nothing}
    <div class="scroll" tabindex="0" role="region" aria-label="Tree of the agents"><svg class="picture" viewBox="-16 ${low - 24} ${width} ${height}" preserveAspectRatio="xMinYMin meet" aria-hidden="true" ${styled({ width: `${width}px` })}>
      ${root.links().map((l) => linkPath(/** @type {any} */ (l)))}
      ${all.map((n) => nodeShape(n, task, page.now))}</svg></div>
    <p class="hidden">The list has the same agents, for the keyboard and for screen readers.</p>`;
}

/**
 * Chooses the task of the picture.
 * @param {any} tree
 * @param {Task} chosen
 */
function taskChooser(tree, chosen) {
  return html`<label class="field"><span>Task</span><select @change=${(/** @type {any} */ e) => goTo("organization", e.target.value, currentPlace().params)}>
    ${[...tree.tasks.values()].map((/** @type {Task} */ t) => html`<option value=${t.id} .selected=${t === chosen}>${excerpt(t.text, 80)} (${t.status})</option>`)}</select></label>`;
}

/** @param {{source: any, target: any}} l */
function linkPath({ source, target }) {
  const middle = (source.y + target.y) / 2;
  return svg`<path d="M${source.y},${source.x}C${middle},${source.x} ${middle},${target.x} ${target.y},${target.x}"></path>`;
}

/** @param {any} n @param {Task} task @param {number} now */
function nodeShape(n, task, now) {
  const agent = /** @type {Agent | undefined} */ (n.data.agent);
  const denied = agent?.deniedAt && now - agent.deniedAt < recently;
  const kind = denied ? "bad" : agent && ["calling", "thinking", "starting"].includes(agent.status) ? "work" : agent?.status === "waiting" ? "wait" : "off";
  return svg`<g class=${kind} transform="translate(${n.y},${n.x})" @click=${() => goTo("organization", agent?.id ?? task.id, currentPlace().params)}>
    <circle r="5"></circle><text x="9" y="4">${agent ? agent.name || agent.role : callerName(task.caller)} <tspan class="quiet">${agent?.tool ?? agent?.status ?? ""}</tspan></text></g>`;
}
