// Screen: all events of the record, with filters that are a link.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { get, RequestError } from "./api.js";
import { eventFacts } from "./event-facts.js";
import { eventTypes } from "./event-types.js";
import { bodyOf, brief, command, preciseTime } from "./format.js";
import { commandLine, idChip, mark, quiet, statusMark, table } from "./parts.js";
import { callerName, personName } from "./people.js";
import { placeLink, setParams } from "./place.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {import("./screen.js").Place} Place */

const pageSize = 100; // also while the record is followed: each of its rows is drawn
const filters = /** @type {const} */ (["task", "agent", "role", "caller", "tool", "type", "since"]);

/** @type {import("./screen.js").Screen} */
export const record = {
  id: "record", title: "Record", key: "e", scope: "caller",
  loadKey: (place) => JSON.stringify([...filters.map((f) => place.params[f]), place.params.denied, place.params.cursor]),
  async load(place, signal) {
    try {
      const page = await get("api/v1/events", queryOf(place.params), signal);
      return { events: page.items, next: page.next };
    } catch (error) {
      if (isRefusedFilter(error)) {
        return { events: [], problem: { field: error.details.field, text: error.message } };
      }
      throw error;
    }
  },
  fold(data, e, place) {
    if (data.problem || place.params.cursor || place.params.paused || data.events[0]?.seq >= e.seq) {
      return false;
    }
    if (!matches(e, place.params)) {
      return needsGateway(place.params) ? "reload" : false;
    }
    data.events.unshift(e);
    if (data.events.length > pageSize) {
      data.events.length = pageSize;
      data.next = btoa(String(data.events[pageSize - 1].seq)).replace(/=+$/, ""); // the cursor at which older events begin
    }
    return true;
  },
  isEmpty: (data, place) => data.events.length === 0 && !filters.some((f) => place.params[f]) && !place.params.denied,
  empty: (_, page) => page.session.operator
    ? { text: "The record is empty. Each decision, call and message is recorded here.", command: command("log") }
    : { text: "You see only your calls and the events of tasks that you have started: none yet. Calls that you have decided are listed under Approvals." },
  tools: (_, place) => html`
    <label class="check"><input type="checkbox" .checked=${place.params.denied === "1"} @change=${(/** @type {any} */ e) => setParams({ denied: e.target.checked ? "1" : "", cursor: "" })}>Only denied</label>
    <label class="check"><input type="checkbox" .checked=${!place.params.paused} @change=${(/** @type {any} */ e) => setParams({ paused: e.target.checked ? "" : "1" })}>Follow</label>`,
  render: (data, place, page) => html`${filterForm(place, data.problem)}
    <div class="split"><div>${eventTable(data, place)}${pages(data, place)}</div>${chosen(data, place, page)}</div>`,
};

/**
 * Reports whether the gateway cannot read the value of a filter.
 * @param {unknown} error
 * @returns {error is RequestError}
 */
function isRefusedFilter(error) {
  return error instanceof RequestError && error.status === 400 && filters.includes(error.details?.field);
}

/** @param {Record<string, string>} params */
function queryOf(params) {
  /** @type {Record<string, any>} */
  const query = { limit: pageSize, cursor: params.cursor, denied: params.denied === "1" };
  for (const name of filters) {
    query[name] = params[name];
  }
  return query;
}

const id = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

/**
 * Reports whether a filter may select an event that matches rejects: the gateway also knows the ids of
 * roles, and the names of agents and users.
 * @param {Record<string, string>} params
 */
function needsGateway(params) {
  return id.test(params.role ?? "") || Boolean(params.agent && !id.test(params.agent)) || Boolean(params.caller);
}

/**
 * Reports whether a new event passes the filters. Those that need the gateway are left out.
 * @param {import("./stream.js").OrgEvent} e
 * @param {Record<string, string>} params
 */
function matches(e, params) {
  return (!params.task || e.task === params.task) && (!params.agent || e.agent === params.agent) && (!params.role || e.role === params.role)
    && (!params.tool || e.tool === params.tool) && (!params.caller || e.caller === params.caller)
    && (!params.type || params.type.split(",").includes(e.type)) && (params.denied !== "1" || e.decision === "denied" || e.type === "tool_error" && e.code === "insufficient_permissions");
}

const fields = /** @type {Record<string, [label: string, hint: string]>} */ ({
  task: ["Task", "id"], agent: ["Agent", "id"], role: ["Role", "id or name"], caller: ["Caller", "name"], tool: ["Tool", "name"],
  type: ["Types", "tool_call"], since: ["Since", "24h, or a time"],
});

/**
 * @param {Place} place
 * @param {{field: string, text: string} | undefined} problem of a value
 */
function filterForm(place, problem) {
  return html`<form class="actions filters" @submit=${(/** @type {Event} */ e) => {
    e.preventDefault();
    const values = Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (e.target)));
    setParams({ .../** @type {any} */ (values), cursor: "", event: "" });
  }}>${filters.map((name) => filterInput(name, place.params[name] ?? "", problem?.field === name))}
    <datalist id="event-types">${eventTypes.map((type) => html`<option value=${type}></option>`)}</datalist>
    <button>Search</button><a class="button" href=${placeLink("record")}>Clear</a></form>
    ${problem ? html`<p role="alert" id="filter-problem">${mark("bad", `${fields[problem.field][0]}: ${problem.text}`)}</p>` : nothing}
    ${commandLine(command("log", ...filters.flatMap((f) => place.params[f] ? ["--" + f, place.params[f]] : []), ...(place.params.denied ? ["--denied"] : [])))}`;
}

/** @param {string} name @param {string} value @param {boolean} refused */
function filterInput(name, value, refused) {
  const [label, hint] = fields[name];
  return html`<label><span>${label}</span><input ?data-filter=${name === "task"} name=${name} list=${name === "type" ? "event-types" : nothing} placeholder=${hint} autocomplete="off" aria-invalid=${refused ? "true" : nothing} aria-describedby=${refused ? "filter-problem" : nothing} .value=${value}></label>`;
}

/** @param {any} data @param {Place} place */
function eventTable(data, place) {
  if (data.problem) {
    return nothing;
  }
  if (data.events.length === 0) {
    return html`<p class="quiet">No event passes the filters.</p>`;
  }
  const denied = new Set(data.events.filter((/** @type {any} */ e) => e.decision === "denied" && e.call).map((/** @type {any} */ e) => e.call));
  return table("Events, newest first", ["Time", "What", "Who", "About"], data.events.map((/** @type {any} */ e) => ({
    key: e.seq, href: placeLink("record", "", { ...place.params, event: String(e.seq) }), current: place.params.event === String(e.seq),
    cells: [html`<span class="fixed">${preciseTime(e.at)}</span>`, what(e, denied), who(e), about(e)],
  })));
}

/**
 * @param {any} e
 * @param {Set<string>} denied the calls that were denied: their errors tell the agent so, and are no further problem
 */
function what(e, denied) {
  if (e.decision === "denied") {
    return mark("bad", "denied");
  }
  if (e.type === "tool_error") {
    return denied.has(e.call) ? quiet("agent was told") : mark("wait", "failed");
  }
  return e.decision === "allowed" ? mark("good", "call") : html`<span class="fixed">${e.type}</span>`;
}

/**
 * Who has done what an event tells. A call is the role's, and the decision about it is a person's.
 * @param {any} e
 */
function who(e) {
  if (e.type === "approval_decided") {
    return e.by ? personName(e.by) : quiet("organization");
  }
  return e.role || (e.caller ? callerName(e.caller) : quiet("organization"));
}

/** @param {any} e */
function about(e) {
  if (e.type === "approval_decided") {
    return html`${e.outcome === "vote" ? mark("good", "vote") : statusMark(e.outcome)} <code>${e.tool}</code>${e.args ? " The arguments were changed." : nothing}${e.reason ? html` <span class="lines">${brief(e.reason, 140)}</span>` : nothing}`;
  }
  const text = e.reason ?? e.text ?? bodyOf(e.message?.payload).text ?? e.message?.payload ?? e.answer?.text ?? e.result ?? e.error?.message ?? e.error ?? e.args ?? e.change ?? "";
  return html`${e.tool ? html`<code>${e.tool}</code> ` : nothing}${e.code ? html`<code>${e.code}</code> ` : nothing}${text === "" ? nothing : html`<span class="lines">${brief(text, 140)}</span>`}`;
}

/** @param {any} data @param {Place} place */
function pages(data, place) {
  return html`<div class="actions">${place.params.cursor ? html`<a class="button" href=${placeLink("record", "", { ...place.params, cursor: "", event: "" })}>Newest</a>` : nothing}
    ${data.next ? html`<a class="button" href=${placeLink("record", "", { ...place.params, cursor: data.next, event: "" })}>Older</a>` : nothing}</div>`;
}

/** @param {any} data @param {Place} place @param {Page} page */
function chosen(data, place, page) {
  const e = data.events.find((/** @type {any} */ one) => String(one.seq) === place.params.event);
  return html`<aside class="panel" aria-label="The event">${e ? html`<h2>Event ${e.seq}</h2>
    ${e.task ? html`<p><a href=${placeLink("task", e.task, { event: String(e.seq) })}>Open its task</a></p>` : nothing}
    ${eventFacts(e, e.agent && idChip(e.agent), page.session.operator)}` : html`<p class="quiet">Choose an event to see all of it.</p>`}</aside>`;
}
