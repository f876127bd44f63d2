// What the agents do, one generator function for each role. Every yield asks the runtime
// for something: a new agent, a tool call, or the next message.

role("root", function* (task) {
  const written = yield* ask("writer", task.payload.text);
  const kept = yield* ask("keeper", task.payload.text);
  return `${written}\n${kept}`;
});

// ask hires an agent of a role for one piece of work and waits for its answer.
function* ask(name, work) {
  const agent = yield hire(name, work);
  if (agent.error) throw new Error(agent.message);
  const { payload } = yield receive();
  if (payload.kind === "error") throw new Error(payload.message);
  return payload;
}

role("writer", function* (task) {
  const file = yield call("write_file", { path: "note.txt", content: task.payload.text + "\n" });
  return file.error ? `The writer wrote nothing: ${file.message}` : `The writer wrote ${file.path}, ${file.size} bytes.`;
});

// The keeper also tries to write a file. Its role has no such tool, so the call is denied.
role("keeper", function* (task) {
  const [stored, file] = yield [
    call("put_artifact", { type: "note", content: task.payload.text }),
    call("write_file", { path: "note.txt", content: task.payload.text }),
  ];
  const kept = stored.error ? `The keeper stored nothing: ${stored.message}` : `The keeper stored ${stored.artifactRef}.`;
  return file.error ? `${kept} It may not write files: ${file.error}.` : kept;
});
