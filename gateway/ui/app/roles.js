// Screen: the roles, and an editor that shows who gains and loses which tools before it saves.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { getTagged, list, RequestError, send } from "./api.js";
import { ruleText } from "./approval-rules.js";
import { ask, field } from "./dialog.js";
import { keepsNumbers } from "./exact-json.js";
import { command, count } from "./format.js";
import { commandLine, difference, empty, facts, filterField, idChip, json, mark, names, oneLine, quiet, statusMark, table, when } from "./parts.js";
import { pause } from "./pause.js";
import { callerName, roleName } from "./people.js";
import { goTo, placeLink, roleLink, setParams } from "./place.js";
import { reachList } from "./reach.js";
import { change, choiceOf, faultOf, gainsOf, isChanged, newDraft, reachedOf, readPart, setChoice } from "./role-draft.js";
import { holdersOf, loadTokens } from "./token-holders.js";

/** @typedef {import("./screen.js").Page} Page */
/** @typedef {import("./screen.js").Place} Place */
/** @typedef {import("./role-draft.js").Draft} Draft */

const rolesShown = 5000;
const dryRunAfter = 200; // milliseconds after the last change of the draft

/** @type {import("./screen.js").Screen} */
export const roles = {
  id: "roles", title: "Roles", key: "r", scope: "operator",
  loadKey: (place) => place.id,
  load: (place, signal) => place.id ? loadRole(place.id, signal) : loadRoles(signal),
  fold(data, e) {
    if (e.type.startsWith("group_")) {
      return data.draft && isChanged(data.draft) ? false : "reload";
    }
    if (e.type !== "role_changed") {
      return false;
    }
    if (!data.role || e.roleId !== data.role.id) {
      return data.role ? false : "reload";
    }
    if (!isChanged(data.draft)) {
      return "reload";
    }
    if (e.record?.revision > data.role.revision) {
      data.overtaken = e.by;
    }
    return true;
  },
  async refresh(data, place) {
    if (!data.role) {
      Object.assign(data, await loadRoles());
      return;
    }
    const fresh = await loadRole(place.id);
    if (!isChanged(data.draft)) {
      Object.assign(data, fresh);
      return;
    }
    data.groups = fresh.groups; // the user has begun a change since the event came
    data.overtaken ||= fresh.role.revision > data.role.revision ? "Another editor" : "";
  },
  heading: (data) => data.role && `Role ${data.role.name}`,
  tools: (data, place, page) => data.roles ? html`
    ${filterField("Filter roles", place.params.filter ?? "", (filter) => setParams({ filter }))}
    <button type="button" class="primary" @click=${() => create(page)}>Create a role</button>` : roleTools(data, page),
  render: (data, place, page) => data.roles ? roleList(data, place, page) : oneRole(data, page),
};

/** @param {AbortSignal} [signal] */
async function loadRoles(signal) {
  const page = await list("api/v1/roles", {}, rolesShown, signal);
  return { roles: page.items, more: page.more };
}

/** @param {string} id @param {AbortSignal} [signal] */
async function loadRole(id, signal) {
  const [{ body: role, text, etag }, groups, tokens] = await Promise.all([
    getTagged("api/v1/roles/" + encodeURIComponent(id), signal), list("api/v1/tool-groups", {}, 2000, signal), loadTokens(signal),
  ]);
  return { role, etag, groups: groups.items, tokens, draft: newDraft(role, text), diff: undefined, error: undefined, overtaken: "" };
}

/** @param {any} data @param {Place} place @param {Page} page */
function roleList(data, place, page) {
  const words = (place.params.filter ?? "").toLowerCase();
  const shown = data.roles.filter((/** @type {any} */ r) => `${r.name} ${r.description ?? ""} ${r.id} ${(r.toolGroups ?? []).join(" ")}`.toLowerCase().includes(words));
  const rows = shown.map((/** @type {any} */ r) => ({
    href: placeLink("roles", r.id),
    cells: [r.name, r.suspendedAt ? statusMark("paused") : statusMark(r.status), html`${names(r.toolGroups, 8)}${r.dangling?.length ? mark("note", count(r.dangling.length, "unknown group")) : nothing}`,
      names(r.grant, 8), creatorOf(r), when(r.createdAt, page.now)],
  }));
  return html`${data.roles.length ? nothing : empty("There is no role beside root yet. A role says which tools its agents have.", command("role", "create", "reader", "--use", "workspace"))}
    ${table("Roles by name", ["Role", "Status", "Uses", "Grants", "Created by", "Created"], "root org_management".includes(words) ? [rootRow, ...rows] : rows)}`;
}

/** The role of root is not stored, and the editor does not change it. */
const rootRow = {
  href: placeLink("access", "", { role: "root" }),
  cells: ["root", statusMark("active"), names(["org_management"], 1), quiet("what the organization lets it grant"), quiet("rolecall, fixed"), nothing],
};

/** @param {any} role */
function creatorOf(role) {
  return role.createdBy === "config" ? "the configuration" : role.createdBy === "operator" ? "the operator" : role.createdBy === "root" ? "root" : idChip(role.createdBy);
}

/** @param {any} data @param {Page} page */
function roleTools(data, page) {
  const { role } = data;
  return html`<a class="button" href=${placeLink("roles")}>All roles</a>
    <a class="button" href=${placeLink("access", "", { role: role.name })}>What may it call?</a>
    <a class="button" href=${placeLink("record", "", { role: role.name })}>Its record</a>
    <a class="button" href=${placeLink("start", "", { role: role.id })}>Give it a task</a>
    ${role.suspendedAt ? html`<button type="button" @click=${() => pause({ role: role.id }, "resume", `role ${role.name}`, page)}>Resume</button>`
      : html`<button type="button" class="danger" @click=${() => pause({ role: role.id }, "pause", `role ${role.name}`, page)}>Pause</button>`}`;
}

/** @param {Page} page */
async function create(page) {
  const role = await ask({
    title: "Create a role", confirm: "Create", body: html`${field("Name", "name", { required: true })}${field("What its agents are for", "description")}<p class="quiet">It begins without tools. You choose them next.</p>`,
    command: ({ name, description }) => command("role", "create", name || "NAME", ...(description ? ["--description", description] : []), "--use-none", "--grant-none"),
    preview: async ({ name }) => name ? reachList((await send("POST", "api/v1/roles?dryRun=true", newRole({ name }))).reach ?? []) : nothing,
    run: (fields) => send("POST", "api/v1/roles", newRole(fields)),
  });
  role?.id ? goTo("roles", role.id) : page.redraw();
}

/** @param {Record<string, string>} fields */
function newRole({ name, description }) {
  return { name, description: description || undefined, toolGroups: [], grant: [] };
}

/** @param {any} data @param {Page} page */
function oneRole(data, page) {
  const { role, draft } = data;
  return html`<div class="split"><form @submit=${(/** @type {Event} */ e) => { e.preventDefault(); save(data, page); }}>
      ${data.overtaken ? html`<div class="notice" role="alert">${mark("note", `${callerName(data.overtaken)} has changed this role meanwhile.`)} <button type="button" @click=${page.reload}>Look at it again</button></div>` : nothing}
      ${isDeclared(role) ? html`<div class="note">This role is declared in the configuration. Change it in its file, which <code>rolecall serve</code> reads again. Here you see what a change would do; it is not saved.</div>` : nothing}
      ${role.suspendedAt ? html`<div class="notice">${mark("bad", "The role is paused.")}</div>` : nothing}
      ${groupFields(data, page)}
      ${otherFields(data, page)}
      ${formButtons(data, page)}
    </form>
    <aside class="panel" aria-label="Effect">${isChanged(draft) ? effect(data) : about(data, page)}</aside></div>`;
}

/**
 * Reports whether a role is declared in the configuration, so that it is changed in its file alone.
 * @param {any} role
 */
function isDeclared(role) {
  return role.createdBy === "config";
}

/** @param {any} data @param {Page} page */
function about(data, page) {
  const { role } = data;
  return html`<h2>${role.name}</h2>
    ${facts([["About", role.description], ["Status", role.suspendedAt ? statusMark("paused") : statusMark(role.status)], ["Created by", creatorOf(role)], ["Created", when(role.createdAt, page.now)],
      ["Model", role.llmServiceId ?? quiet("default")], ["Pattern", role.pattern], ["Answers with calls in one turn", role.limits?.rounds], ["Revision", role.revision], ["Tool-gated", role.toolGated && String(role.toolGated)], ["Only server", role.server],
      ["Unknown", role.dangling?.length ? mark("note", role.dangling.join(", ")) : undefined], ["Id", idChip(role.id)]])}
    <h3>Tools that it may call now</h3>
    ${role.tools?.length ? table("Tools of the role", ["Tool", "Through", "Effect"], role.tools.map((/** @type {any} */ t) => ({ href: placeLink("access", "", { role: role.name, tool: t.name }), cells: [html`<code>${t.name}</code>`, t.group, t.effect] })))
      : empty("This role may call no tool.")}
    ${approvalRules(role)}
    ${keptFields(role)}
    ${commandLine(command("role", "show", role.name))}`;
}

/**
 * Says which calls wait for people, by the rules of the role itself.
 * @param {any} role
 */
function approvalRules({ approval = [] }) {
  return approval.length ? html`<h3>Approval ${quiet("of these calls, by people")}</h3>
    <ul class="plain">${approval.map((/** @type {any} */ rule) => html`<li>${mark("approval", ruleText(rule))}</li>`)}</ul>` : nothing;
}

/**
 * Shows the fields that the editor does not have. A change keeps them.
 * @param {any} role
 */
function keptFields(role) {
  const kept = ["agent", "hosts", "result", "states", "tasks"].filter((name) => role[name] !== undefined);
  return kept.length ? html`<h3>Fields that the editor keeps</h3>${tasksInWords(role)}${kept.map((name) => html`<details><summary><code>${name}</code></summary>${json(role[name])}</details>`)}` : nothing;
}

/**
 * Says whose rights the tasks of callers in a role have, if it is another role.
 * @param {any} role
 */
function tasksInWords({ tasks }) {
  return tasks?.as ? html`<p>Tasks that its callers start have the rights of role <a href=${roleLink(tasks.as)}>${roleName(tasks.as) || tasks.as}</a>.</p>` : nothing;
}

/** @param {any} data @param {Page} page */
function groupFields(data, page) {
  const { draft, groups } = data;
  const known = new Set(groups.flatMap((/** @type {any} */ g) => g.tools?.length ? [g.id, readPart(g.id)] : [g.id]));
  const others = [...new Set([...draft.saved.use, ...draft.saved.grant, ...draft.use, ...draft.grant])].filter((id) => id !== "*" && !known.has(id));
  const none = draft.use.length === 0 && draft.grant.length === 0;
  return html`<fieldset><legend>Tool groups</legend>
    <p class="quiet">Its agents and callers may call what it uses. Its agents may put what it grants into roles that they create.</p>
    ${none ? html`<div class="notice">${mark("note", "No group is chosen: agents of this role may call no tool. They can still answer in text.")}</div>` : nothing}
    <div class="group-choice"><strong>Group</strong><strong>Use</strong><strong>Grant</strong></div>
    ${groupRow({ id: "*", description: "All groups, also those that are registered later" }, data, page)}
    ${groups.map((/** @type {any} */ g) => groupRow(g, data, page))}
    ${others.map((id) => groupRow({ id, description: "A single tool, or a group that is not registered now" }, data, page))}
    ${toolAdder(data, page)}
  </fieldset>`;
}

/**
 * A field that adds a single tool of a server, or any other group by its id.
 * @param {any} data
 * @param {Page} page
 */
function toolAdder(data, page) {
  const add = (/** @type {any} */ e) => {
    const input = e.target.closest("div").querySelector("input"), id = input.value.trim();
    if (id) {
      setChoice(data.draft, "use", id, true);
      input.value = "";
      preview(data, page);
    }
  };
  return html`<div class="actions"><input aria-label="A single tool: SERVER/TOOL" placeholder="SERVER/TOOL"
    @keydown=${(/** @type {any} */ e) => { if (e.key === "Enter") { e.preventDefault(); add(e); } }}><button type="button" @click=${add}>Use a single tool</button></div>`;
}

/** @param {any} group @param {any} data @param {Page} page */
function groupRow(group, data, page) {
  return html`<div class="group-choice"><div><code>${group.id}</code> <span class="quiet">${oneLine(group.description ?? "", 90)}</span></div>${choiceBoxes(group.id, data, page)}
    ${group.tools?.length ? html`<details class="tools" ?open=${choiceOf(data.draft, "use", readPart(group.id)) || choiceOf(data.draft, "grant", readPart(group.id))}>
      <summary class="small quiet">${count(group.toolCount ?? group.tools.length, "tool")}</summary>${names(group.tools, 200)}
      <div class="group-choice"><div><code>${readPart(group.id)}</code> <span class="quiet">those that only read</span></div>${choiceBoxes(readPart(group.id), data, page)}</div></details>` : nothing}</div>`;
}

/** @param {string} id @param {any} data @param {Page} page */
function choiceBoxes(id, data, page) {
  const box = (/** @type {"use" | "grant"} */ kind) => html`<label class="check"><input type="checkbox" .checked=${choiceOf(data.draft, kind, id)}
    @change=${(/** @type {any} */ e) => { setChoice(data.draft, kind, id, e.target.checked); preview(data, page); }}><span class="hidden">${kind === "use" ? "Use" : "Grant"} ${id}</span></label>`;
  return html`${box("use")}${box("grant")}`;
}

/** @param {any} data @param {Page} page */
function otherFields(data, page) {
  const { draft } = data;
  const input = (/** @type {string} */ name) => (/** @type {any} */ e) => {
    draft.fields[name] = e.target.value;
    preview(data, page);
  };
  return html`<fieldset><legend>Agents</legend>
    <label class="field"><span>What its agents are for</span><input .value=${draft.fields.description} @input=${input("description")}></label>
    <label class="field"><span>Instructions</span><textarea rows="6" .value=${draft.fields.rolePrompt} @input=${input("rolePrompt")}></textarea></label>
    <label class="field"><span>Model</span><input .value=${draft.fields.llmServiceId} placeholder="the default of the organization" @input=${input("llmServiceId")}></label>
    <label class="field"><span>Only tools of this server</span><input .value=${draft.fields.server} placeholder="no restriction" @input=${input("server")}></label>
    ${selection("Its agents must answer from their tools alone", draft.fields.toolGated, [["false", "no"], ["true", "yes"], ["strict", "yes, and an answer without a successful call is withheld"]], input("toolGated"))}
    ${selection("How its agents work", draft.fields.pattern, [["react", "react: call tools as needed"], ["plan", "plan: plan the calls first"]], input("pattern"))}
    <label class="field"><span>Answers with calls in one turn</span><input inputmode="numeric" .value=${draft.fields.rounds} placeholder="the limit of the organization" @input=${input("rounds")}></label>
    <label class="field"><span>Bounds on arguments, as JSON: for each tool a condition for each path</span>
      <textarea class="code" rows="6" spellcheck="false" ?disabled=${!keepsNumbers} .value=${draft.fields.bind} placeholder='{"write_file": {"/path": {"under": "reports"}}}' @input=${input("bind")}></textarea></label>
  </fieldset>`;
}

/** @param {any} data @param {Page} page */
function formButtons(data, page) {
  return html`<div class="buttons"><button type="button" ?disabled=${!isChanged(data.draft)} @click=${page.reload}>Undo</button>
    ${isDeclared(data.role) ? nothing : html`<button class="primary" ?disabled=${!maySave(data)}>Save</button>`}</div>`;
}

/** @param {string} label @param {string} value @param {[string, string][]} choices @param {(e: any) => void} change */
function selection(label, value, choices, change) {
  return html`<label class="field"><span>${label}</span><select .value=${value} @change=${change}>
    ${choices.map(([id, text]) => html`<option value=${id} ?selected=${id === value}>${text}</option>`)}</select></label>`;
}

/**
 * Reports whether the draft may be saved. A role that another editor has changed is looked at again first.
 * @param {any} data
 */
function maySave(data) {
  return isChanged(data.draft) && !isDeclared(data.role) && !data.overtaken && !faultOf(data.draft);
}

/** @type {number | undefined} */
let previewTimer;

/**
 * Asks what the change would do, after the user has paused.
 * @param {any} data
 * @param {Page} page
 */
function preview(data, page) {
  clearTimeout(previewTimer);
  data.diff = undefined;
  previewTimer = setTimeout(() => isChanged(data.draft) && dryRun(data, page), dryRunAfter);
  page.redraw();
}

/** @param {any} data @param {Page} page */
async function dryRun(data, page) {
  const asked = JSON.stringify(change(data.draft));
  const fault = faultOf(data.draft);
  data.error = fault ? new Error(fault) : undefined;
  if (fault) {
    page.redraw();
    return;
  }
  try {
    const answer = await send("PATCH", `api/v1/roles/${encodeURIComponent(data.role.id)}?dryRun=true`, change(data.draft));
    if (asked === JSON.stringify(change(data.draft))) {
      data.diff = answer.diff;
      data.reach = answer.reach ?? [];
    }
  } catch (/** @type {any} */ error) {
    data.error = error;
  }
  page.redraw();
}

/** @param {any} data */
function effect(data) {
  const { diff, error, role, draft } = data;
  return html`<h2>What this change does</h2>
    ${error ? html`<p role="alert">${mark("bad", error.message)}</p>` : diff === undefined ? quiet("Asking …") : html`${effectLists(diff, data.tokens)}${reachList(data.reach)}`}
    ${fieldEffects(draft)}
    ${isDeclared(role) ? html`<p class="quiet">It would hold from the moment at which the file is read again.</p>` : html`<p class="quiet">A change holds from the moment at which it is saved. Calls that have started go on.</p>
    ${commandLine(updateCommand(role, draft))}`}`;
}

/**
 * Shows changes that gain and lose no tools.
 * @param {Draft} draft
 */
function fieldEffects({ fields, saved }) {
  const labels = { pattern: "How its agents work", rounds: "Answers with calls in one turn", toolGated: "Must answer from tools alone" };
  const changed = Object.entries(labels).filter(([name]) => fields[name] !== saved.fields[name]);
  return html`${changed.length ? facts(changed.map(([name, label]) => [label, `${saved.fields[name] || "default"} → ${fields[name] || "default"}`])) : nothing}
    ${fields.bind === saved.fields.bind ? nothing : html`<h3>Bounds on arguments</h3><p class="quiet">They hold at each call from then on, also of agents at work.</p>
      ${difference(saved.fields.bind, fields.bind)}`}`;
}

/** @param {any} role @param {Draft} draft */
function updateCommand(role, draft) {
  const changes = change(draft);
  const groups = (/** @type {string} */ flag, /** @type {string[] | undefined} */ ids) => ids === undefined ? [] : ids.includes("*") ? [`--${flag}-all`] : ids.length ? [`--${flag}`, ids.join(",")] : [`--${flag}-none`];
  return command("role", "update", role.name, ...groups("use", changes.toolGroups), ...groups("grant", changes.grant),
    ...(changes.description !== undefined ? ["--description", changes.description ?? ""] : []), ...(changes.rolePrompt !== undefined ? ["--prompt", changes.rolePrompt ?? ""] : []),
    ...(changes.llmServiceId !== undefined ? ["--model", changes.llmServiceId ?? ""] : []), ...(changes.server !== undefined ? ["--server", changes.server] : []),
    ...(changes.toolGated !== undefined ? [`--tool-gated=${changes.toolGated}`] : []),
    ...(changes.pattern !== undefined ? ["--pattern", changes.pattern] : []), ...(changes.limits !== undefined ? ["--limits", `rounds=${changes.limits?.rounds ?? 0}`] : []),
    ...("bind" in changes ? ["--bind", changes.bind === null ? "none" : "bounds.json"] : []), "--revision", String(role.revision));
}

/** @param {any} diff @param {import("./token-holders.js").Token[]} tokens */
function effectLists(diff, tokens) {
  const { counts } = diff;
  if (counts.agents + counts.roles + counts.callers + counts.tasks === 0) {
    return html`<p>${mark("good", "Nobody gains or loses a tool.")}</p>`;
  }
  return html`${effectList("Roles", "for agents that are spawned from now on", diff.roles, counts.roles, (d) => d.name)}
    ${effectList("Agents", "at work now, in running tasks", diff.agents, counts.agents, (d) => html`${d.role} ${idChip(d.agent)}`)}
    ${effectList("Callers", "for the tools that they call themselves", diff.callers, counts.callers, (d) => `${d.user} in role ${d.role}`)}
    ${effectList("New tasks", "that callers start with these rights", diff.tasks, counts.tasks, (d) => tasksOf(d, tokens), ["gain", "lose"])}`;
}

/** @param {{role: string, as: string}} d @param {import("./token-holders.js").Token[]} tokens */
function tasksOf({ role, as }, tokens) {
  return `Tasks that callers in role ${role}${holdersOf(role, tokens)} start${as ? ` with the rights of role ${as}` : ""}`;
}

/** @param {string} title @param {string} about @param {any[]} list @param {number} total @param {(d: any) => any} name @param {string[]} [verbs] */
function effectList(title, about, list, total, name, [gain, lose] = ["gains", "loses"]) {
  if (total === 0) {
    return html`<p>${title} ${quiet(`${about}: none`)}</p>`;
  }
  return html`<h3>${title} ${quiet(about)}</h3><ul class="plain">${list.map((d) => html`<li><strong>${name(d)}</strong>
    ${d.gains.length ? html`<div>${mark("plus", gain)} ${names(d.gains, 60)}</div>` : nothing}
    ${d.loses.length ? html`<div>${mark("minus", lose)} ${names(d.loses, 60)}</div>` : nothing}
    ${(d.bounds ?? []).map(boundChange)}
    ${d.hosts?.length ? html`<div>${mark("note", "other hosts")} ${d.hosts.map((/** @type {any} */ h) => (h.allow ?? []).join(", ")).join("; ")}</div>` : nothing}</li>`)}</ul>
    ${total > list.length ? quiet(`and ${total - list.length} more`) : nothing}`;
}

/** @param {any} b */
function boundChange(b) {
  const rules = (/** @type {any[]} */ list) => (list ?? []).map((r) => JSON.stringify(r)).join(" and ");
  return html`${b.removed?.length ? html`<div>${mark("minus", "bound")} ${b.tool} <code>${rules(b.removed)}</code></div>` : nothing}
    ${b.added?.length ? html`<div>${mark("plus", "bound")} ${b.tool} <code>${rules(b.added)}</code></div>` : nothing}`;
}

/** @param {any} data @param {Page} page */
async function save(data, page) {
  const { role, draft, etag } = data;
  if (!maySave(data)) {
    return;
  }
  await dryRun(data, page);
  if (data.error || !data.diff) {
    return;
  }
  const gains = gainsOf(data.diff), reached = reachedOf(data.reach), rebinds = "bind" in change(draft);
  const saved = await ask({
    title: `Change role ${role.name}`, confirm: "Save", typed: gains.length || reached.length || rebinds ? role.name : undefined,
    body: html`${gains.length ? html`<p>${mark("plus", `It gains ${count(gains.length, "tool")}:`)} ${names(gains, 40)}</p>` : html`<p>No tool is gained.</p>`}
      ${reached.length ? html`<p>${mark("plus", "Through agents that are spawned, more is reached:")} ${names(reached, 40)}</p>` : nothing}
      ${rebinds ? html`<p>${mark("note", "Its bounds on arguments change.")}</p>` : nothing}`,
    command: () => updateCommand(role, draft),
    run: async () => {
      try {
        return await send("PATCH", "api/v1/roles/" + encodeURIComponent(role.id), change(draft), { "If-Match": etag });
      } catch (error) {
        if (error instanceof RequestError && error.code === "conflict") {
          data.overtaken = data.overtaken || "Another editor";
        }
        throw error;
      }
    },
  });
  saved ? page.reload() : page.redraw();
}
