// Screen: who may call what, and why.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { list, send } from "./api.js";
import { approvalText, ruleText } from "./approval-rules.js";
import { deniedRoles } from "./denied-roles.js";
import { command, count } from "./format.js";
import { denialText, grantHint, rightsVersion } from "./grant-hint.js";
import { matrix, rolesShown } from "./matrix.js";
import { commandLine, empty, facts, mark, quiet, table } from "./parts.js";
import { placeLink, roleLink, setParams } from "./place.js";
import { loadTokens, tokenHolders } from "./token-holders.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {import("./screen.js").Place} Place */
/** @typedef {import("./matrix.js").Row} Row */

/** @type {import("./screen.js").Screen} */
export const access = {
  id: "access", title: "Who can", key: "w", scope: "caller",
  loadKey: (place) => [place.params.role, place.params.tool].join("\n"),
  load: (place, signal, page) => page.session.operator ? loadForOperator(place.params, signal) : loadForCaller(place.params),
  fold: (_, e) => e.type === "role_changed" || e.type.startsWith("group_") ? "reload" : false,
  tools: (data, place, page) => html`${page.session.operator ? choice("Role", "role", withRoot(data.roles).map((r) => r.name), place) : nothing}
    ${data.tools.length ? choice("Tool", "tool", data.tools.map((/** @type {any} */ t) => t.name), place) : nothing}`,
  render(data, place, page) {
    const { role, tool } = place.params;
    if (data.verdict) {
      return oneVerdict(data, role ?? page.session.role, page);
    }
    if (data.holders) {
      return holders(data, tool, page);
    }
    return data.verdicts ? verdicts(data, role ?? page.session.role, page) : matrix(data, place);
  },
};

/** @param {Record<string, string>} params @param {AbortSignal} signal */
async function loadForOperator({ role, tool }, signal) {
  const [roles, tools] = await Promise.all([list("api/v1/roles", {}, 5000, signal), list("api/v1/tools", {}, 5000, signal)]);
  const data = { roles: roles.items, tools: tools.items };
  if (role && tool) {
    return { ...data, verdict: await send("POST", "api/v1/can", { role, tool, why: true }) };
  }
  if (tool) {
    const [holders, tokens] = await Promise.all([send("POST", "api/v1/can", { who: tool }), loadTokens(signal)]);
    return { ...data, holders, tokens };
  }
  if (role) {
    return { ...data, verdicts: (await send("POST", "api/v1/can", { role })).verdicts };
  }
  return { ...data, rows: await loadMatrix(signal) };
}

/**
 * Reads which tools the first roles may call.
 * @param {AbortSignal} signal
 * @returns {Promise<Row[]>}
 */
async function loadMatrix(signal) {
  /** @type {Map<string, Row>} */
  const rows = new Map();
  let fromTool;
  do {
    const part = await list("api/v1/matrix", { fromTool }, rolesShown, signal);
    for (const { id, name, allowed, waits = [] } of part.items) {
      const row = rows.get(id) ?? { id, name, allowed: new Set(), waits: new Set() };
      rows.set(id, row);
      allowed.forEach((/** @type {string} */ tool) => row.allowed.add(tool));
      waits.forEach((/** @type {string} */ tool) => row.waits.add(tool));
    }
    fromTool = part.last.nextTool;
  } while (fromTool);
  return [...rows.values()];
}

/** @param {Record<string, string>} params */
async function loadForCaller({ tool }) {
  const { verdicts } = await send("POST", "api/v1/can", {});
  const tools = verdicts.map((/** @type {any} */ v) => ({ name: v.tool, group: v.group }));
  return tool ? { tools, verdict: verdicts.find((/** @type {any} */ v) => v.tool === tool) ?? await send("POST", "api/v1/can", { tool }) } : { tools, verdicts };
}

/** @param {string} label @param {string} name @param {string[]} values @param {Place} place */
function choice(label, name, values, place) {
  const now = place.params[name] ?? "";
  return html`<label class="check"><span>${label}</span><select @change=${(/** @type {any} */ e) => setParams({ [name]: e.target.value })}>
    <option value="">all</option>${now && !values.includes(now) ? html`<option value=${now} selected>${now}</option>` : nothing}
    ${[...new Set(values)].map((value) => html`<option value=${value} ?selected=${value === now}>${value}</option>`)}</select></label>`;
}

/** @param {any} data @param {string} role @param {Page} page */
function oneVerdict(data, role, page) {
  const v = data.verdict, operator = page.session.operator;
  return html`<div class="card">
    <h2>${decision(role, v)}</h2>
    ${facts([["Why", v.reason], ["Rule", v.allowed ? v.rule : denialText(v.rule, role)], ["Code", v.code && html`<code>${v.code}</code>`], ["Group", v.group && toolLink(v.group, v.tool, v.group)], ["State", v.state], [rightsVersion, v.epoch]])}
    ${v.limits?.length ? html`<h3>Every limit that applies</h3>${limitTable(v.limits, v.approval)}` : nothing}
    ${v.group && !v.allowed && (role === "root" || v.rule?.startsWith("the toolGroups of")) ? html`<p>${grantHint(role, v.group, operator)}</p>` : nothing}
    ${operator ? html`<div class="actions"><a class="button" href=${placeLink("access", "", { tool: v.tool })}>Who may call ${v.tool}?</a><a class="button" href=${placeLink("access", "", { role })}>What may ${role} call?</a></div>
    ${commandLine(command("can", "--role", role, "--why", v.tool))}` : nothing}</div>`;
}

/**
 * The limits on a call, which only operators see. One decides if the call is denied.
 * @param {any[]} limits
 * @param {any[]} [approval] the rules that let the call wait
 */
function limitTable(limits, approval = []) {
  const decides = limits.some((l) => l.decides);
  const waits = approval.map((rule) => ({ cells: [`approval rule: ${ruleText(rule)}`, nothing, mark("approval", "with approval"), ...(decides ? [nothing] : [])] }));
  return table("Limits", ["Limit", "Of role", "Allows", ...(decides ? ["Decides"] : [])], [...limits.map((l) => ({
    cells: [l.bound ? html`${l.rule} <div>arguments within <code>${l.bound}</code></div>` : l.rule, l.role ? html`<a href=${roleLink(l.roleId)}>${l.role}</a>` : quiet("none"),
      l.allows ? mark("good", "yes") : mark("bad", "no"), ...(decides ? [l.decides ? mark("bad", "this one") : nothing] : [])],
  })), ...waits]);
}

/** @param {string} role @param {any} v */
function decision(role, v) {
  if (!v.allowed) {
    return mark("bad", `Role ${role} may not call ${v.tool}`);
  }
  return v.waits ? mark("approval", `Role ${role} may call ${v.tool} ${approvalText(v.approval)}`) : mark("good", `Role ${role} may call ${v.tool}`);
}

/** @param {any} v */
function answerMark(v) {
  return !v.allowed ? mark("bad", "no") : v.waits ? mark("approval", approvalText(v.approval)) : mark("good", "yes");
}

/**
 * A link to a tool among those of its group.
 * @param {string} group
 * @param {string} tool
 * @param {string} text
 */
function toolLink(group, tool, text) {
  return html`<a href=${placeLink("tools", group, { tool })}><code>${text}</code></a>`;
}

/**
 * The roles with root, which is not stored.
 * @param {any[]} roles
 * @returns {{id: string, name: string}[]}
 */
function withRoot(roles) {
  return [{ id: "root", name: "root" }, ...roles];
}

/** @param {any} data @param {string} tool @param {Page} page */
function holders(data, tool, page) {
  const { roles, agents, tasks, reason, epoch } = data.holders;
  const holding = new Map(roles.map((/** @type {any} */ r) => [r.id, r])), denied = withRoot(data.roles).filter((r) => !holding.has(r.id));
  const group = data.tools.find((/** @type {any} */ t) => t.name === tool)?.group;
  return html`<div class="card"><h2>Who may call ${group ? toolLink(group, tool, tool) : html`<code>${tool}</code>`}</h2>
    ${reason ? html`<p>${mark("bad", reason)}</p>` : nothing}
    <h3>Roles ${quiet("whose agents may call it")}</h3>
    ${roles.length ? table("Roles", ["Role", "Why"], roles.map((/** @type {any} */ r) => ({ href: roleLink(r.id), cells: [r.name, html`<a href=${placeLink("access", "", { role: r.name, tool })}>group ${r.group}</a> ${withApproval(r)}`] }))) : html`<p class="quiet">No role may call it.</p>`}
    <p class="quiet">An agent has it only if the agent that spawned it may grant it, and its task allows it. root may spawn agents of all roles of the operator and of the configuration.</p>
    ${reason ? nothing : html`${deniedRoles(tool, denied, epoch, page)}${tokenHolders(data.tokens, holding)}`}
    <h3>Agents ${quiet("that are at work")}</h3>
    ${agents.length ? table("Agents", ["Agent", "Role"], agents.map((/** @type {any} */ a) => ({ href: placeLink("organization", a.id), cells: [a.name || a.id, html`${a.role} ${withApproval(a)}`] }))) : html`<p class="quiet">No agent may call it now.</p>`}
    ${tasks.length ? html`<h3>Tasks of callers ${quiet("with the rights of another role")}</h3>${table("Tasks of callers", ["Callers in role", "Their tasks have the rights of role"], tasks.map((/** @type {any} */ t) => ({ cells: [t.name, html`${t.as} ${withApproval(t)}`] })))}` : nothing}
    ${commandLine(command("can", "--who", tool))}</div>`;
}

/** @param {{waits?: boolean}} holder of a tool */
function withApproval({ waits }) {
  return waits ? mark("approval", approvalText()) : nothing;
}

/** @param {any} data @param {string} role @param {Page} page */
function verdicts(data, role, page) {
  if (data.verdicts.length === 0) {
    return empty(page.session.operator ? "There is no tool." : "Your role may call no tools.");
  }
  const allowed = data.verdicts.filter((/** @type {any} */ v) => v.allowed), waits = allowed.filter((/** @type {any} */ v) => v.waits);
  return html`<p>Role ${role} may call ${count(allowed.length, "tool")} of ${data.verdicts.length}${waits.length ? `, ${waits.length} of them with approval` : ""}.</p>
    ${table("Tools", ["Tool", "Group", "Allowed", "Rule"], data.verdicts.map((/** @type {any} */ v) => ({
      href: placeLink("access", "", { role, tool: v.tool }), cells: [html`<code>${v.tool}</code>`, toolLink(v.group, v.tool, v.group), answerMark(v), v.allowed ? v.rule : denialText(v.rule, role)],
    })))}${commandLine(command("can", "--role", role))}`;
}
