// What the fixtures read from a request. aimock first converts every protocol to
// OpenAI's form.

// text returns the text of a message.
export function text(message) {
  if (typeof message.content === "string") return message.content;
  return (message.content ?? []).map((part) => part.text ?? "").join("");
}

// calls lists the calls the agent made, in order: {name, args, result}. A result
// follows the answer with its call; ids are unique only within an answer. Of OpenAI's
// responses, each call of an answer is a message of its own.
export function calls(messages) {
  const all = [];
  let open = new Map();
  for (const [i, m] of messages.entries()) {
    if (m.tool_calls) {
      const made = m.tool_calls.map((c) => [c.id, { name: c.function.name, args: JSON.parse(c.function.arguments) }]);
      all.push(...made.map(([, call]) => call));
      open = new Map(messages[i - 1]?.tool_calls ? [...open, ...made] : made);
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

// outcome parses a result. Gemini accepts only objects, so a result may be wrapped in
// a field.
function outcome(content) {
  const value = JSON.parse(content);
  const fields = Object.keys(value ?? {});
  if (fields.length === 1 && ["output", "result", "error"].includes(fields[0]) && typeof value[fields[0]] === "object") return value[fields[0]];
  return value;
}

// heard lists the payloads of messages from other agents, each on a line with its
// sender.
export function heard(messages) {
  return messages
    .filter((m) => m.role === "user")
    .flatMap((m) => text(m).split("\n").filter((line) => line.startsWith('{"from":')))
    .map((line) => JSON.parse(line).payload)
    .map((payload) => (typeof payload?.text === "string" ? payload.text : JSON.stringify(payload)));
}

// asked returns the first message of the conversation.
export function asked(messages) {
  return text(messages.find((m) => m.role === "user"));
}
