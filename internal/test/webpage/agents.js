// The agent script of these tests. The text of a task says what root does:
//   deny N       calls a tool N times that it does not have
//   carry TEXT   has TEXT in the arguments of a denied call, in a file, in a result and in an answer
//   busy N       spawns N agents, calls a tool N times that it does not have, and waits
//   agents N     spawns N agents, which wait
//   many N       spawns N agents without work, and waits
//   long N       does what deny N does, and then what pay N does
//   pay N        spawns a payer, which writes N into a file
//   hire ROLE    spawns an agent in a role, and answers with its answer
//   anything     answers with the text
const brief = { objective: "Wait.", constraints: [], inputs: "None.", outputs: "None.", completion_criteria: "None." };

role("root", function* (task) {
  const text = String(task.payload.text);
  if (text.startsWith("carry ")) {
    yield call("run_command", { command: text });
    yield hire("keeper", text.slice(0, 500), { text });
    const answer = yield receive();
    return answer.payload;
  }
  const [word, number] = text.split(" ");
  if (word === "deny" || word === "long") {
    for (let i = 0; i < Number(number); i++) {
      yield call("run_command", { command: "id" });
    }
    if (word === "deny") return "done";
  }
  if (word === "busy") {
    for (let i = 0; i < Number(number); i++) {
      yield hire("clerk", "Wait.", {});
      yield call("run_command", { command: "id" });
    }
    yield receive();
    return "done";
  }
  if (word === "agents") {
    for (let i = 0; i < Number(number); i++) {
      yield hire("clerk", "Wait.", {});
    }
    yield receive();
    return "done";
  }
  if (word === "many") {
    const role = yield call("find_role_by_name", { name: "clerk" });
    for (let i = 0; i < Number(number); i++) {
      const { error, message } = yield call("spawn_agent", { roleId: role.id, taskBrief: brief });
      if (error) return message;
    }
    yield receive();
    return "done";
  }
  if (word === "hire") {
    yield hire(number, "Write.", {});
    const answer = yield receive();
    return answer.payload;
  }
  if (word === "pay" || word === "long") {
    yield hire("payer", "Pay.", { amount: number });
    const answer = yield receive();
    return answer.payload;
  }
  return text;
});

role("clerk", function* () {
  yield receive();
  return "";
});

role("payer", function* (task) {
  const { error } = yield call("write_file", { path: "payment.txt", content: task.payload.data.amount });
  if (error) return "not paid: " + error;
  const { content } = yield call("read_file", { path: "payment.txt" });
  return "paid " + content;
});

role("keeper", function* (task) {
  const { text } = task.payload.data;
  yield call("put_artifact", { type: "report", meta: { title: text.slice(0, 200) }, content: text });
  yield call("write_file", { path: "kept.txt", content: text });
  const { content } = yield call("read_file", { path: "kept.txt" });
  return content;
});

role("asker", function* () {
  const { error } = yield call("test_elicitation", { message: "Which account?" });
  return error ? "no answer" : "answered";
});
