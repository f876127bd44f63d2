// The agent script of these tests. The text of a task says what root does:
//   deny N       calls a tool N times that it does not have
//   agents N     spawns N agents, which wait
//   anything     answers with the text
role("root", function* (task) {
  const text = String(task.payload.text);
  const [word, number] = text.split(" ");
  if (word === "deny") {
    for (let i = 0; i < Number(number); i++) {
      yield call("run_command", { command: "id" });
    }
    return "done";
  }
  if (word === "agents") {
    for (let i = 0; i < Number(number); i++) {
      yield hire("clerk", "Wait.", {});
    }
    yield receive();
    return "done";
  }
  return text;
});

role("clerk", function* () {
  yield receive();
  return "";
});
