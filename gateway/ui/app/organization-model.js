// The tree of tasks and agents, and how events change it. Pure: without a browser.

/** @typedef {import("./stream.js").OrgEvent} OrgEvent */
/**
 * @typedef {object} Agent
 * @property {string} id
 * @property {string} [name]
 * @property {string} role
 * @property {string} [parent]
 * @property {string} task
 * @property {string} status
 * @property {string} state
 * @property {string} createdAt
 * @property {string} [tool] that it calls now
 * @property {number} [deniedAt] when a call of it was last denied, in milliseconds since 1970
 * @property {string} [deniedTool]
 * @property {string} [wait] what it waits for, besides a message
 * @property {string} [waitCall] the call that waits
 * @property {boolean} [isRolePaused]
 */
/**
 * @typedef {object} Task
 * @property {string} id
 * @property {string} text
 * @property {string} status
 * @property {string} caller
 * @property {string} createdAt
 * @property {{code?: string, message?: string, by?: string}} [reason] why it is paused
 * @property {Agent[]} agents
 */
/** @typedef {{task: Task, agent?: Agent, depth: number, children: number, open: boolean, more?: number, id: string}} Row */
/** @typedef {{tasks: Map<string, Task>, agents: Map<string, Agent>, more: boolean}} Tree */

export const siblingsShown = 20; // of one parent, before they are folded
export const tasksShown = 500;

/**
 * @param {any[]} tasks of the gateway, with their agents
 * @param {boolean} more whether there are older tasks
 * @returns {Tree}
 */
export function newTree(tasks, more) {
  const tree = { tasks: new Map(), agents: new Map(), more };
  for (const t of tasks) {
    const task = { ...t, agents: t.agents ?? [] };
    tree.tasks.set(task.id, task);
    for (const agent of task.agents) {
      tree.agents.set(agent.id, agent);
    }
  }
  return tree;
}

/**
 * Notes for which agents calls wait for approval.
 * @param {Tree} tree
 * @param {any[]} approvals
 */
export function addApprovals(tree, approvals) {
  for (const { agent, call, tool } of approvals) {
    set(tree.agents.get(agent), { wait: `approval of ${tool}`, waitCall: call });
  }
}

/**
 * Notes which agents wait for answers to questions.
 * @param {Tree} tree
 * @param {any[]} questions
 */
export function addQuestions(tree, questions) {
  for (const { agent, call, tool } of questions) {
    set(tree.agents.get(agent), { wait: answerTo(tool), waitCall: call });
  }
}

/**
 * Notes which agents wait until their role is resumed.
 * @param {Tree} tree
 * @param {Set<string>} roles the names of those that are paused
 */
export function addRolePauses(tree, roles) {
  for (const agent of tree.agents.values()) {
    agent.isRolePaused = roles.has(agent.role);
  }
}

/** @param {string} tool */
function answerTo(tool) {
  return `an answer to a question of ${tool}`;
}

/**
 * Returns what an agent waits for, "" if it does not wait.
 * @param {Agent} agent
 * @param {Task | undefined} task
 */
export function waitOf(agent, task) {
  if (agent.status === "terminated" || agent.status === "finished") {
    return "";
  }
  if (agent.wait) {
    return agent.wait;
  }
  if (agent.isRolePaused) {
    return `role ${agent.role} to be resumed`;
  }
  if (task && isHeld(task)) {
    return `the task to be resumed (${task.reason?.code ?? "paused"})`;
  }
  if (agent.status === "paused") {
    return "a pause to end";
  }
  return agent.status === "waiting" ? "a message" : "";
}

/**
 * Reports whether a task itself is paused, rather than the roles of its agents.
 * @param {Task} task
 */
function isHeld({ status, reason }) {
  return status === "paused" && (reason?.code !== "paused" || Boolean(reason.by));
}

/**
 * Applies an event. It reports whether the tree has changed.
 * @param {Tree} tree
 * @param {OrgEvent} e
 * @returns {boolean}
 */
export function applyEvent(tree, e) {
  const task = tree.tasks.get(e.task ?? "");
  const agent = tree.agents.get(e.agent ?? "");
  switch (e.type) {
    case "task_started":
      if (task) {
        return false;
      }
      addTask(tree, { id: e.task ?? "", text: e.text, status: "running", caller: e.caller, createdAt: e.at, agents: [] });
      return true;
    case "agent_spawned": return Boolean(task) && addAgent(tree, /** @type {Task} */ (task), e);
    case "agent_terminated": return set(agent, { status: "terminated", tool: undefined });
    case "model_answered": return set(agent, e.answer?.calls?.length ? {} : { status: "waiting", tool: undefined });
    case "tool_call": return set(agent, e.decision === "denied"
      ? { deniedAt: Date.parse(e.at), deniedTool: e.tool }
      : { status: "calling", tool: e.tool });
    case "approval_requested": return set(agent, { wait: `approval of ${e.tool}`, waitCall: e.call });
    case "question_asked": return set(agent, { wait: answerTo(e.tool), waitCall: e.call });
    case "approval_decided": return e.outcome !== "vote" && endWait(agent, e.call);
    case "question_answered": return endWait(agent, e.call);
    case "tool_result": case "tool_error": endWait(agent, e.call); return set(agent, { status: "thinking", tool: undefined });
    case "state_transition": return set(agent, { state: e.to });
    case "message": return set(tree.agents.get(e.message?.to), { status: "thinking" });
    case "task_paused": return set(task, { status: "paused", reason: { code: e.code, message: e.reason } });
    case "task_retried": return set(task, { status: "running", reason: undefined });
    case "paused": return e.role || e.all ? false : set(task, { status: "paused", reason: { code: "paused", message: e.reason, by: e.by } });
    case "resumed": return e.role || e.all ? false : set(task, { status: "running", reason: undefined });
    case "result": return endTask(task, e.status);
  }
  return false;
}

/**
 * Adds a task as the newest. The oldest task that has ended makes room for it.
 * @param {Tree} tree
 * @param {Task} task
 */
function addTask(tree, task) {
  tree.tasks = new Map([[task.id, task], ...tree.tasks]);
  const oldest = tree.tasks.size > tasksShown && [...tree.tasks.values()].findLast((t) => hasEnded(t.status));
  if (oldest) {
    tree.more = true;
    tree.tasks.delete(oldest.id);
    for (const agent of oldest.agents) {
      tree.agents.delete(agent.id);
    }
  }
}

/**
 * @param {Tree} tree
 * @param {Task} task
 * @param {OrgEvent} e
 */
function addAgent(tree, task, e) {
  const id = e.agent ?? "";
  if (tree.agents.has(id)) {
    return false;
  }
  const agent = { id, name: e.name, role: e.role ?? "", parent: e.parent, task: task.id, status: "starting", state: "undefined", createdAt: e.at };
  tree.agents.set(id, agent);
  task.agents.push(agent);
  return true;
}

/**
 * @param {any} target
 * @param {Record<string, any>} changes
 */
function set(target, changes) {
  if (!target || target.status === "terminated" && changes.status !== undefined) {
    return false;
  }
  Object.assign(target, changes);
  return true;
}

/**
 * Ends the wait of an agent for a call. An event without a call ends any wait.
 * @param {Agent | undefined} agent
 * @param {string | undefined} call
 */
function endWait(agent, call) {
  return agent?.wait !== undefined && (!call || agent.waitCall === call) && set(agent, { wait: undefined, waitCall: undefined });
}

/**
 * @param {Task | undefined} task
 * @param {string} status
 */
function endTask(task, status) {
  if (!task) {
    return false;
  }
  task.status = status;
  for (const agent of task.agents) {
    set(agent, { status: agent.parent ? "terminated" : "finished", tool: undefined });
  }
  return true;
}

/**
 * Returns the visible rows. Closed tasks and agents hide what is below them. Of the children of
 * one parent 20 are shown until the parent is in unfolded.
 * @param {Tree} tree
 * @param {{closed: Set<string>, opened: Set<string>, unfolded: Set<string>, filter: string, live: boolean, nameOf: (caller: string) => string}} view
 * @returns {Row[]}
 */
export function visibleRows(tree, view) {
  const rows = [];
  for (const task of tree.tasks.values()) {
    if (view.live && hasEnded(task.status)) {
      continue;
    }
    const words = view.filter.toLowerCase();
    const matches = (/** @type {Agent} */ a) => !words || `${a.name} ${a.role} ${a.id} ${a.status} ${a.tool ?? ""}`.toLowerCase().includes(words);
    const own = !words || `${task.text} ${task.id} ${task.caller} ${view.nameOf(task.caller)} ${task.status}`.toLowerCase().includes(words);
    if (!own && !task.agents.some(matches)) {
      continue;
    }
    const open = hasEnded(task.status) && !words ? view.opened.has(task.id) : !view.closed.has(task.id);
    rows.push({ id: task.id, task, depth: 0, children: task.agents.length, open });
    if (open) {
      addChildren(rows, task, childrenOf(task), "", 1, view, own ? () => true : matches);
    }
  }
  return rows;
}

/** @param {string} status */
export function hasEnded(status) {
  return status === "done" || status === "failed" || status === "cancelled";
}

/** @param {Task} task */
export function childrenOf(task) {
  const known = new Set(task.agents.map((a) => a.id));
  /** @type {Map<string, Agent[]>} */
  const children = new Map();
  for (const agent of task.agents) {
    const parent = agent.parent && known.has(agent.parent) ? agent.parent : "";
    const list = children.get(parent);
    list ? list.push(agent) : children.set(parent, [agent]);
  }
  return children;
}

/**
 * @param {Row[]} rows
 * @param {Task} task
 * @param {Map<string, Agent[]>} children
 * @param {string} parent
 * @param {number} depth
 * @param {{closed: Set<string>, unfolded: Set<string>, filter: string}} view
 * @param {(a: Agent) => boolean} matches
 */
function addChildren(rows, task, children, parent, depth, view, matches) {
  const all = children.get(parent) ?? [];
  const foldable = all.length > siblingsShown && !view.filter && !view.unfolded.has(parent || task.id);
  for (const agent of foldable ? all.slice(0, siblingsShown) : all) {
    const below = children.get(agent.id)?.length ?? 0;
    const open = !view.closed.has(agent.id);
    if (matches(agent)) {
      rows.push({ id: agent.id, task, agent, depth, children: below, open });
    }
    if (open) {
      addChildren(rows, task, children, agent.id, depth + 1, view, matches);
    }
  }
  if (foldable) {
    rows.push({ id: (parent || task.id) + "+", task, depth, children: 0, open: false, more: all.length - siblingsShown });
  }
}
