// An agent script that does what the prompts of organization.yaml ask of a language model.
//
//   root ──┬── analyst    workspace:read  reads the orders and counts
//          └── reporter   console         prints the counts; it cannot write files
//
// The roles are declared in organization.yaml; root only finds them and spawns agents.

role("root", function* (task) {
  const file = (/[\w.\/-]+\.txt\b/.exec(task.payload.text) || ["orders.txt"])[0];
  const [analyst, reporter] = yield [
    call("find_role_by_name", { name: "analyst" }),
    call("find_role_by_name", { name: "reporter" }),
  ];
  const figures = yield* ask(analyst, `Count the orders and pieces in ${file}.`, "One line of figures.");
  const fate = yield* ask(reporter, `Print and keep: ${figures}`, "What became of the figures.");
  return `${figures}\n${fate}`;
});

// ask spawns an agent for one piece of work and waits for its answer.
function* ask(role, objective, outputs) {
  const taskBrief = { objective, constraints: ["Say what was refused."], inputs: "The message.", outputs, completion_criteria: "The work was done or refused." };
  const agent = yield call("spawn_agent_with_task", { roleId: role.id, taskBrief, initialMessage: { task: objective } });
  if (agent.error) throw new Error(agent.message);
  const { payload } = yield receive();
  if (payload.error || payload.kind === "error") throw new Error(payload.message);
  return payload.text ?? payload; // a language model answers with {text}
}

role("analyst", function* (task) {
  const path = /[\w.\/-]+\.txt\b/.exec(task.payload.task)[0];
  const file = yield call("read_file", { path });
  return file.error ? file : count(file.content);
});

// count adds up lines of the form: day, item, number.
function count(text) {
  const orders = text.split("\n").map((line) => line.trim().split(/\s+/)).filter((fields) => fields.length === 3);
  const pieces = new Map();
  for (const [, thing, number] of orders) pieces.set(thing, (pieces.get(thing) || 0) + Number(number));
  const total = [...pieces.values()].reduce((sum, n) => sum + n, 0);
  const each = [...pieces].map(([thing, n]) => `${thing} ${n}`).join(", ");
  return `${orders.length} orders, ${total} pieces: ${each}`;
}

role("reporter", function* (task) {
  const figures = task.payload.task.replace("Print and keep: ", "");
  const [printed, kept] = yield [
    call("console_print", { text: figures }),
    call("write_file", { path: "figures.txt", content: figures }),
  ];
  const fate = (done, result) => (result.error ? `not ${done} (${result.error})` : done);
  return `The figures were ${fate("printed", printed)} and ${fate("kept", kept)}.`;
});
