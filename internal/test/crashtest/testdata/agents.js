// root ── 2 leads ── 2 hands each ── 4 rounds of work each. Each round has a unique
// name, which all its effects carry. Messages and results name the rounds, so that
// root's result shows what was lost or repeated.

const ROUNDS = 4;
const BRIEF = { objective: "work", constraints: [], inputs: "a name", outputs: "a report", completion_criteria: "all rounds done" };

role("root", function* () {
  const reports = yield* hire(["left", "right"], ["org_management", "workspace"], () => {});
  return reports.sort((a, b) => (a.name < b.name ? -1 : 1));
});

role("*", function* (task) {
  const { name } = task.payload;
  return yield* name.includes("-") ? work(name) : lead(name);
});

function* lead(name) {
  const heard = [];
  const hands = yield* hire([`${name}-1`, `${name}-2`], ["org_management", "workspace", "artifact", "command", "console"], (news) => heard.push(news));
  passed(yield call("write_file", { path: `${name}.txt`, content: heard.slice().sort().join(" ") }));
  return {
    name,
    heard: heard.sort(),
    unknown: hands.reduce((sum, hand) => sum + hand.unknown, 0),
  };
}

// hire creates a role and an agent for each name and returns the agents' results. It
// passes their earlier messages to news.
function* hire(names, toolGroups, news) {
  for (const name of names) {
    const grant = ["org_management", "workspace", "artifact", "command", "console"];
    const role = passed(yield call("create_role", { name, rolePrompt: "", toolGroups, grant }));
    passed(yield call("spawn_agent_with_task", { roleId: role.id, taskBrief: BRIEF, initialMessage: { name } }));
  }
  const reports = [];
  while (reports.length < names.length) {
    const { payload } = yield receive();
    if (payload.done) news(payload.done);
    else reports.push(passed(payload));
  }
  return reports;
}

function* work(name) {
  let unknown = 0;
  for (let i = 0; i < ROUNDS; i++) {
    const mark = `${name}.${i}`;
    const mutating = yield [
      call("console_print", { text: `printed ${mark}` }),
      call("run_command", { command: `echo '${mark}' >> tally` }),
    ];
    for (const outcome of mutating) {
      if (outcome.error === "tool_interrupted") unknown++;
      else passed(outcome);
    }
    passed(yield call("write_file", { path: `${mark}.txt`, content: mark }));
    passed(yield call("put_artifact", { type: "round", content: mark }));
    passed(yield call("send_message", { to: self.parent, payload: { done: mark } }));
  }
  return { name, unknown };
}

function passed(outcome) {
  if (outcome.error || outcome.kind === "error") throw new Error(JSON.stringify(outcome));
  return outcome;
}
