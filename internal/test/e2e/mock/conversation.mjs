// What the fixtures of a play read out of a request. aimock brings every
// protocol into OpenAI's form first.

// text gives what a message says.
export function text(message) {
  if (typeof message.content === "string") return message.content;
  return (message.content ?? []).map((part) => part.text ?? "").join("");
}

// calls lists the calls the agent made, in order: {name, args, result}. A
// result stands behind the answer that asked for it; ids are only unique there.
export function calls(messages) {
  const all = [];
  let open = new Map();
  for (const m of messages) {
    if (m.tool_calls) {
      const made = m.tool_calls.map((c) => [c.id, { name: c.function.name, args: JSON.parse(c.function.arguments) }]);
      all.push(...made.map(([, call]) => call));
      open = new Map(made);
    }
    if (m.role === "tool") {
      const call = open.get(m.tool_call_id);
      if (!call) throw new Error(`a result for ${m.tool_call_id}, which was not called`);
      call.result = outcome(text(m));
    }
  }
  const unanswered = all.filter((call) => call.result === undefined);
  if (unanswered.length) throw new Error(`calls without a result: ${unanswered.map((c) => c.name)}`);
  return all;
}

// outcome parses a result. Gemini takes objects only, so that there a result
// may stand in a field of its own.
function outcome(content) {
  const value = JSON.parse(content);
  const fields = Object.keys(value ?? {});
  if (fields.length === 1 && ["output", "result", "error"].includes(fields[0]) && typeof value[fields[0]] === "object") return value[fields[0]];
  return value;
}

// heard lists what other agents wrote: each on a line that says who.
export function heard(messages) {
  return messages
    .filter((m) => m.role === "user")
    .flatMap((m) => text(m).split("\n").filter((line) => line.startsWith('{"from":')))
    .map((line) => JSON.parse(line).payload)
    .map((payload) => (typeof payload?.text === "string" ? payload.text : JSON.stringify(payload)));
}

// asked gives the first message of the conversation.
export function asked(messages) {
  return text(messages.find((m) => m.role === "user"));
}
