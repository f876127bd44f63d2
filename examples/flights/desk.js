// The agent script of a flight desk. Root lets a keeper create the table and a clerk answer
// the question. Neither can do the work of the other.
//
//   root ─┬─ keeper   keeping    creates the table and fills it
//         └─ clerk    reading    answers from it
//
// The roles are declared in organization.yaml; root only finds them and spawns agents.

role("root", function* (task) {
  yield* done("keeper", { text: "Make the table." });
  return yield* done("clerk", { question: task.payload.text });
});

// done spawns an agent of a role, sends it a message and returns its answer.
function* done(name, message) {
  const found = yield call("find_role_by_name", { name });
  const agent = yield call("spawn_agent_with_task", {
    roleId: found.id,
    taskBrief: { objective: `Work as the ${name}.`, constraints: ["Say what was refused."], inputs: "A question.", outputs: "The answer.", completion_criteria: "It is answered." },
    initialMessage: message,
  });
  if (agent.error) return `No agent was spawned: ${agent.message}`;
  return (yield receive()).payload;
}

role("keeper", function* () {
  for (const tool of ["create_flights", "fill_flights"]) {
    const made = yield call(tool, {});
    if (made.error) return `The table could not be made: ${made.message}`;
  }
  return "The table is there.";
});

role("clerk", function* (task) {
  const [, airline, flight_number] = /\b([A-Z]{2}) ?0*([0-9]{1,4})\b/.exec(task.payload.question) || [];
  if (!airline) return "Which flight? Give the airline's two letters and the number, as in CY 888.";
  const flights = yield call("search_flights_by_number", { airline, flight_number });
  if (flights.error) return `The flights could not be read: ${flights.message}`;
  const mine = yield call("search_flights_by_user_id", {});
  const emptied = yield call("fill_flights", {});
  const lines = flights.map((f) => `${f.airline} ${f.flight_number} departs ${f.departs}\n`);
  return `${lines.join("") || "no such flight\n"}the caller's own: ${mine.error ?? "read"}, the table filled: ${emptied.error ?? "yes"}`;
});
