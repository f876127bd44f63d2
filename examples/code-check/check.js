// The agent script of a code check. Root spawns a checker that can run programs and an
// author that can write files. Neither can do the work of the other.
//
//   root ──┬── checker   command               runs the tools and reports their output
//          └── author    workspace, artifact   writes the report
//
// The verdict depends on exit codes only. A step that could not be run has not passed.

const STEPS = [
  { name: "toolchain", argv: ["go", "version"] },
  { name: "format", command: 'unformatted=$(gofmt -l .) && echo "$unformatted" && test -z "$unformatted"' },
  { name: "build", argv: ["go", "build", "./..."] },
  { name: "vet", argv: ["go", "vet", "./..."] },
  { name: "test", argv: ["go", "test", "./..."] },
];

const REPORT = "CHECK.md";

const CHECKER = {
  name: "checker",
  toolGroups: ["command"],
  rolePrompt: "You run a project's own tools and report exit codes and output as they are.",
};

const AUTHOR = {
  name: "author",
  toolGroups: ["workspace", "artifact"],
  rolePrompt: "You write a report into a file, exactly as you get it.",
};

// ------------------------------------------------------------------ root

role("root", function* (task) {
  const results = yield* ask(CHECKER, "Find out whether the project builds and passes its tests.", { steps: STEPS });
  if (results.error) return `The project was not checked: ${results.error}: ${results.message}`;
  const text = report(results.steps);
  const written = yield* ask(AUTHOR, `Write the report into ${REPORT}.`, { path: REPORT, content: text });
  if (written.error) return `${text}\nThe report could not be written: ${written.error}: ${written.message}`;
  return text;
});

// ask creates a role, spawns one agent of it for one piece of work, and waits for its
// answer.
function* ask(spec, objective, work) {
  const made = yield call("create_role", spec);
  if (made.error) return made;
  const agent = yield call("spawn_agent_with_task", {
    roleId: made.id,
    taskBrief: { objective, constraints: ["Report what happened."], inputs: "The message.", outputs: "What the tools answered.", completion_criteria: "Every step was tried or is said to be left out." },
    initialMessage: { task: objective, ...work },
  });
  if (agent.error) return agent;
  return (yield receive()).payload;
}

function report(steps) {
  const bad = steps.filter((s) => s.verdict !== "passed");
  const verdict = bad.length === 0 ? "The project builds and passes its tests." : `The project is not in order: ${bad.map((s) => `${s.name} ${s.verdict}`).join(", ")}.`;
  const detail = (s) => `## ${s.name}: ${s.verdict}\n\n${s.said ? "```\n" + s.said + "\n```\n" : ""}`;
  return [`# Check\n`, `${verdict}\n`, ...steps.map(detail)].join("\n");
}

// --------------------------------------------------------------- checker

role("checker", function* (task) {
  const steps = [];
  for (const { name, ...how } of task.payload.steps) {
    if (steps.some((s) => s.verdict === "could not be run")) {
      steps.push({ name, verdict: "was left out", said: "" });
      continue;
    }
    const result = yield call("run_command", { ...how, timeoutMs: 240000 });
    if (result.error === "tool_unavailable") return result; // no sandbox: nothing can run, so there is no verdict
    steps.push({ name, verdict: verdict(result), said: said(result) });
  }
  return { steps };
});

function verdict(result) {
  if (result.error === "command_timeout") return "ran out of time";
  if (result.error || result.exitCode === 127) return "could not be run";
  return result.exitCode === 0 ? "passed" : `failed with exit code ${result.exitCode}`;
}

// said returns the last lines of a program's output.
function said(result) {
  const text = result.error ? result.message : result.stdout + result.stderr;
  return text.trim().split("\n").slice(-30).join("\n");
}

// ---------------------------------------------------------------- author

role("author", function* (task) {
  const { path, content } = task.payload;
  const file = yield call("write_file", { path, content });
  if (file.error) return file;
  return yield call("put_artifact", { type: "text/markdown", content, meta: { title: path } });
});
