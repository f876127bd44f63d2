// Screen: the calls that wait for the user's approval.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { get, list, send } from "./api.js";
import { approversOf } from "./approval-rules.js";
import { argumentChange, argumentEditor, draftText, isChanged, newArgumentDraft } from "./argument-editor.js";
import { decidedList, decidedPanel, loadDecided, taskOf } from "./decided.js";
import { ask } from "./dialog.js";
import { command, count, duration, excerpt } from "./format.js";
import { commandLine, empty, facts, idChip, json, mark, quiet, when } from "./parts.js";
import { callerName } from "./people.js";
import { goTo, placeLink } from "./place.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {import("./screen.js").Place} Place */

const shownMost = 1000;
const refusalsRead = 100; // of the calls that are decided at once
const noneWaits = "No call waits for your approval.";

/** The ids of the requests that the user has chosen, to decide about them at once. */
const chosen = /** @type {Set<string>} */ (new Set());

/** The arguments that the user edits, by the id of the request. */
const drafts = /** @type {Map<string, import("./argument-editor.js").ArgumentDraft>} */ (new Map());

const outcomesShownFor = 60_000; // milliseconds

/** What became of the last decisions, and when they were made: an outcome of the API each, or the message of an error. */
let decided = /** @type {{id: string, name: string, outcome: string, message?: string}[]} */ ([]);
let decidedAt = 0;

/** @type {import("./screen.js").Screen} */
export const approvals = {
  id: "approvals", title: "Approvals", key: "a", scope: "caller",
  loadKey: (place) => place.id,
  async load(place, signal, screenPage) {
    const [page, ended] = await Promise.all([list("api/v1/approvals", {}, shownMost, signal), loadDecided(signal, screenPage)]);
    decided = place.id || Date.now() - decidedAt > outcomesShownFor ? [] : decided; // or until the user goes to another request
    const first = place.id || page.items[0]?.id;
    const one = first && await get("api/v1/approvals/" + encodeURIComponent(first), {}, signal).catch((/** @type {any} */ error) => ({ id: first, error }));
    const waiting = page.items.sort((/** @type {any} */ a, /** @type {any} */ b) => Date.parse(a.until) - Date.parse(b.until));
    return { waiting, more: page.more, one, ended };
  },
  isEmpty: (data) => data.waiting.length === 0 && !data.one && decided.length === 0 && data.ended.length === 0,
  empty: () => ({ text: noneWaits + " Roles with approval rules let calls wait here until people approve them.", command: command("approval", "list", "--watch") }),
  tools: (data, _, page) => {
    const ids = data.waiting.map((/** @type {any} */ a) => a.id).filter((/** @type {string} */ id) => chosen.has(id));
    return ids.length === 0 ? nothing : html`<span>${count(ids.length, "call")} chosen</span>
      <button type="button" class="primary" @click=${() => decideMany("approve", ids, data, page)}>Approve …</button>
      <button type="button" class="danger" @click=${() => decideMany("deny", ids, data, page)}>Deny …</button>`;
  },
  render: (data, place, page) => html`${outcomes(data.ended)}${data.waiting.length || data.one ? nothing : empty(noneWaits)}<div class="split approvals"><div>${requestList(data, place, page)}</div>${oneRequest(data, page)}</div>${decidedList(data.ended, page)}`,
  keydown(e, data, _, page) {
    const { one } = data;
    const at = data.waiting.findIndex((/** @type {any} */ a) => a.id === one?.id);
    switch (e.key) {
      case "y": return Boolean(one?.args) && (!one.refusal || mayOverride(one, page)) && (decide("approve", data, page), true);
      case "n": return Boolean(one?.args) && (decide("deny", data, page), true);
      case "e": return Boolean(one?.args) && !one.operation && (edit(one, page), true);
      case "x": return Boolean(one) && (choose(one.id, page), true);
      case "j": case "k": return goToRequest(data.waiting[at + (e.key === "j" ? 1 : -1)]);
    }
    return false;
  },
};

/** @param {any} request */
function goToRequest(request) {
  if (request) {
    goTo("approvals", request.id);
  }
  return Boolean(request);
}

/** @param {any} data @param {Place} place @param {Page} page */
function requestList(data, place, page) {
  return html`<ul class="plain">${data.waiting.map((/** @type {any} */ a) => html`<li class="card request ${a.id === data.one?.id ? "current" : ""}" data-row>
    <label class="check"><input type="checkbox" .checked=${chosen.has(a.id)} @change=${() => choose(a.id, page)}><span class="hidden">Choose the call of ${a.tool}</span></label>
    <a href=${placeLink("approvals", a.id, place.params)} aria-current=${a.id === data.one?.id ? "true" : nothing}><code>${a.tool}</code></a>
    <span>${a.operation ? html`by operator ${a.starter}` : html`by role ${a.role}${a.starter ? html` for ${a.starter}` : nothing}`}</span>
    <span>${deadline(a, page.now)}</span>
    ${a.short ? html`<code class="args">${a.short}</code>` : nothing}
    ${a.taskShort ? html`<span class="args">Task: ${excerpt(a.taskShort, 100)}</span>` : nothing}</li>`)}</ul>
    ${data.more ? html`<p class="quiet">The first ${shownMost} are listed.</p>` : nothing}`;
}

/** @param {any} a @param {number} now */
function deadline(a, now) {
  const left = Date.parse(a.until) - now;
  return mark(left < 300_000 ? "bad" : "wait", left > 0 ? `${duration(left)} left` : "its time is over");
}

/** @param {string} id @param {Page} page */
function choose(id, page) {
  chosen.has(id) ? chosen.delete(id) : chosen.add(id);
  page.redraw();
}

/** @param {any} data @param {Page} page */
function oneRequest(data, page) {
  const a = data.one;
  if (!a) {
    return nothing;
  }
  if (a.error) {
    const ended = data.ended.find((/** @type {any} */ d) => d.id === a.id);
    return html`<aside class="panel" aria-label="The call">${ended ? decidedPanel(ended, page) : empty("This call does not wait any more.")}</aside>`;
  }
  const draft = drafts.get(a.id), args = a.edited ?? a.args;
  return html`<aside class="panel" aria-label="The call"><h2>${a.operation ? html`Operator ${a.starter} asks for <code>${a.operation}</code>` : html`Role ${a.role} wants to call <code>${a.tool}</code>`}</h2>
    ${facts([["Denied unless decided", deadline(a, page.now)], ["Asked", when(a.asked, page.now)], ["Started by", a.starter || "an operator"], ["Task", a.task && taskOf(a, page)],
      ["Agent", a.agent && html`${a.agentName} ${idChip(a.agent)}`], ["Caller", a.caller && callerName(a.caller)], ["Needs", neededPeople(a)], ["So far", votesOf(a, page.now)]])}
    ${a.reason ? html`<h3>Its reason ${quiet("text of the agent, not of rolecall")}</h3><p class="text">${a.reason}</p>` : nothing}
    ${a.refusal ? html`<div class="notice">${mark("bad", `Your approval does not count: ${a.refusal}.`)}</div>` : nothing}
    <h3>Arguments${a.edited ? quiet(" as another approver has set them") : nothing}</h3>
    ${draft === undefined ? argumentForm(args, a.text) : argumentEditor(a.text, draft, page.redraw)}
    <div class="buttons">
      ${a.operation ? nothing : draft === undefined ? html`<button type="button" @click=${() => edit(a, page)}>Edit <kbd>e</kbd></button>` : html`<button type="button" @click=${() => { drafts.delete(a.id); page.redraw(); }}>Undo the edit</button>`}
      <button type="button" class="danger" @click=${() => decide("deny", data, page)}>Deny … <kbd>n</kbd></button>
      <button type="button" class="primary" ?disabled=${draft !== undefined && draftText(draft) === undefined || Boolean(a.refusal) && !mayOverride(a, page)} @click=${() => decide("approve", data, page)}>${a.refusal && mayOverride(a, page) ? "Override" : "Approve"} … <kbd>y</kbd></button></div>
    ${a.operation ? nothing : html`<p><a href=${placeLink("access", "", { role: a.role })}>What may role ${a.role} call without approval?</a></p>`}
    ${commandLine(command("approval", "show", a.id))}</aside>`;
}

/**
 * The arguments by name. If a value is not shown as it was written, all of them are shown as text:
 * a browser rounds large numbers, and does not show some characters.
 * @param {any} args
 * @param {string} text
 */
function argumentForm(args, text) {
  const entries = Object.entries(args ?? {});
  if (JSON.stringify(args, null, 2) !== text) {
    return json(text, Infinity);
  }
  return entries.length === 0 ? html`<p class="quiet">No arguments.</p>`
    : facts(entries.map(([name, value]) => [name, typeof value === "object" ? json(value, Infinity) : html`<span class="text">${typeof value === "string" && value.trim() === value && value ? value : JSON.stringify(value)}</span>`]));
}

/** @param {any} a */
function neededPeople(a) {
  return html`<ul class="plain">${(a.rules ?? []).map((/** @type {any} */ rule) => html`<li>${approversOf(rule)}</li>`)}</ul>`;
}

/** @param {any} a @param {number} now */
function votesOf(a, now) {
  return a.votes?.length ? html`<ul class="plain">${a.votes.map((/** @type {any} */ v) => html`<li>${mark("good", `${v.by}${v.as ? ` as ${v.as}` : ""}`)} ${when(v.at, now)}</li>`)}</ul>` : quiet("no approval");
}

/** @param {any} a @param {Page} page */
function edit(a, page) {
  if (!drafts.has(a.id)) {
    drafts.set(a.id, newArgumentDraft(a.text));
  }
  page.afterDraw(() => /** @type {HTMLElement | null} */ (document.querySelector("[name=args]"))?.focus());
}

/**
 * Asks for the decision about the request that is shown, and sends it.
 * @param {"approve" | "deny"} action
 * @param {any} data
 * @param {Page} page
 */
async function decide(action, data, page) {
  const a = data.one, draft = drafts.get(a.id), text = draft && draftText(draft);
  if (draft && text === undefined) {
    return;
  }
  const args = text !== undefined && isChanged(a.text, text) ? text : undefined;
  const override = action === "approve" && mayOverride(a, page), must = override && Boolean(a.refusal);
  const answer = await ask({
    title: action === "deny" ? `Deny the call of ${a.tool}` : must ? `Approve ${a.tool} in place of the approvers` : `Approve the call of ${a.tool}`,
    confirm: action === "deny" ? "Deny" : must ? "Override" : "Approve", danger: action === "deny",
    body: html`${action === "approve" ? html`${decidedArguments(a, args)}<p>It runs once, with these arguments.</p>` : reasonField()}${override ? overrideField(must) : nothing}`,
    ready: ({ override: ticked, reason }) => !must || ticked === "on" && Boolean(reason),
    command: ({ reason, override: ticked }) => command("approval", action, a.id, ...(args && action === "approve" ? ["--args", args] : []), ...(ticked || must ? ["--override"] : []), ...(reason ? ["--reason", reason] : [])),
    run: ({ reason, override: ticked }) => send("POST", "api/v1/approvals/" + encodeURIComponent(a.id), withArgs({
      action, digest: a.digest, reason: reason || undefined, override: ticked === "on" || undefined,
    }, action === "approve" ? args : undefined)),
  });
  if (answer) {
    drafts.delete(a.id);
    chosen.delete(a.id);
    decided = [{ id: a.id, name: requestName(a) + (action === "approve" && args !== undefined ? ", with changed arguments" : ""), outcome: answer.outcome }];
    decidedAt = Date.now();
    goTo("approvals");
    page.reload();
  }
}

/**
 * The arguments with which a call will run: what an edit changes, or all of them.
 * @param {any} a
 * @param {string | undefined} args as the user has changed them
 */
function decidedArguments(a, args) {
  return args !== undefined ? html`<p>With the arguments that you have edited:</p>${argumentChange(a.text, args)}` : argumentForm(a.edited ?? a.args, a.text);
}

/** @param {any} a */
function requestName(a) {
  return a.operation ? `${a.operation} of operator ${a.starter}` : `${a.tool} by role ${a.role}`;
}

/**
 * Returns the body of a decision with arguments as they were written: numbers are not rounded.
 * @param {any} body
 * @param {string | undefined} args
 */
function withArgs(body, args) {
  const text = JSON.stringify(body);
  return args === undefined ? text : `${text.slice(0, -1)},"args":${args}}`;
}

function reasonField() {
  return html`<label class="field"><span>Reason, which the agent reads</span><input name="reason" autocomplete="off"></label>`;
}

/**
 * Reports whether the user may approve a request in place of the approvers.
 * @param {any} a
 * @param {Page} page
 */
function mayOverride(a, page) {
  return page.session.operator && !a.operation;
}

/** @param {boolean} open */
function overrideField(open) {
  return html`<details ?open=${open}><summary>Approve in place of the approvers</summary>
    <label class="check"><input type="checkbox" name="override">I decide as the operator. The record marks it.</label>
    <label class="field"><span>Why</span><input name="reason" autocomplete="off"></label></details>`;
}

/**
 * Decides about all chosen requests in one commit, and shows what became of each.
 * @param {"approve" | "deny"} action
 * @param {string[]} ids
 * @param {any} data
 * @param {Page} page
 */
async function decideMany(action, ids, data, page) {
  const requests = new Map(data.waiting.filter((/** @type {any} */ a) => ids.includes(a.id)).map((/** @type {any} */ a) => [a.id, a]));
  const refused = action === "approve" ? await refusals(ids) : new Map();
  const answer = await ask({
    title: `${action === "approve" ? "Approve" : "Deny"} ${count(ids.length, "call")}`, confirm: action === "approve" ? "Approve all" : "Deny all", danger: action === "deny",
    body: html`<ul class="plain">${[...requests.values()].map((a) => html`<li><code>${a.tool}</code> by role ${a.role}${refused.has(a.id) ? html`<div>${mark("bad", `Your approval does not count: ${refused.get(a.id)}.`)}</div>` : nothing}</li>`)}</ul>${action === "deny" ? reasonField() : nothing}`,
    command: ({ reason }) => command("approval", action, ...ids, ...(reason ? ["--reason", reason] : [])),
    run: ({ reason }) => send("POST", "api/v1/approvals", { decisions: ids.map((id) => ({ id, action, digest: requests.get(id).digest, reason: reason || undefined })) }),
  });
  if (answer?.outcomes) {
    chosen.clear();
    decided = answer.outcomes.map((/** @type {any} */ o) => ({ id: o.id, name: requestName(requests.get(o.id)), outcome: o.outcome ?? "", message: o.code && o.message }));
    decidedAt = Date.now();
    page.redraw();
  }
}

/**
 * Returns why approvals of the user would not count, by the ids of the requests.
 * @param {string[]} ids
 * @returns {Promise<Map<string, string>>}
 */
async function refusals(ids) {
  const found = await Promise.all(ids.slice(0, refusalsRead).map((id) => get("api/v1/approvals/" + encodeURIComponent(id)).catch(() => ({}))));
  return new Map(found.filter((a) => a.refusal).map((a) => [a.id, a.refusal]));
}

/** What the user is told of a request after a decision. */
const decidedTexts = /** @type {Record<string, string>} */ ({
  approved: "The call runs now. Who started the task sees its result.", denied: "The agent is told.", vote: "Your approval is noted. The call waits for others.",
});

/**
 * Says what became of the last decisions. What a call has yielded stands among the decided calls.
 * @param {any[]} ended
 */
function outcomes(ended) {
  const hasRun = (/** @type {string} */ id) => ended.some((d) => d.id === id && d.status !== "approved" && d.status !== "running");
  return decided.length === 0 ? nothing : html`<div class=${decided.some((d) => d.message) ? "notice" : "notice done"} role="status">${decided.map(({ id, name, outcome, message }) =>
    html`<div>${message ? html`${mark("bad", message)} ${idChip(id)}` : html`${mark(outcome === "denied" ? "off" : "good", outcome === "vote" ? "noted" : outcome)} ${name}. ${outcome === "approved" && hasRun(id) ? "" : decidedTexts[outcome] ?? ""}`}</div>`)}</div>`;
}
