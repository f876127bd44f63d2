// Scripts a language model that does the work of examples/any-model. Each answer
// depends only on the conversation, so a request that lacks something gets another
// answer.
import { asked, calls, heard } from "./conversation.mjs";

const fixture = (role, answer) => ({
  match: { systemMessage: role === "root" ? "You lead an organization" : `the role "${role}"` },
  response: ({ messages }) => answer(messages),
});

export default [fixture("root", root), fixture("analyst", analyst), fixture("reporter", reporter)];

function root(messages) {
  const made = calls(messages);
  const [analyst, reporter] = made.filter((c) => c.name === "find_role_by_name").map((c) => c.result);
  const spawned = made.filter((c) => c.name === "spawn_agent_with_task");
  const answers = heard(messages);
  if (!analyst) return use(find("analyst"), find("reporter"));
  if (spawned.length === 0) return use(spawn(analyst, `Count the orders and pieces in ${fileIn(asked(messages))}.`));
  if (answers.length < spawned.length) return { content: "I wait for an answer." };
  if (spawned.length === 1) return use(spawn(reporter, `Print and keep: ${answers[0]}`));
  return { content: `${answers[0]}\n${answers[1]}` };
}

function find(name) {
  return { name: "find_role_by_name", arguments: { name } };
}

function spawn(role, objective) {
  const taskBrief = { objective, constraints: ["Say what was refused."], inputs: "The message.", outputs: "One line.", completion_criteria: "The work was done or refused." };
  return { name: "spawn_agent_with_task", arguments: { roleId: role.id, taskBrief, initialMessage: { task: objective } } };
}

function analyst(messages) {
  const [file] = calls(messages);
  if (!file) return use({ name: "read_file", arguments: { path: fileIn(asked(messages)) } });
  return { content: count(file.result.content) };
}

function fileIn(text) {
  return /[\w./-]+\.txt\b/.exec(text)[0];
}

function count(text) {
  const orders = text.split("\n").map((line) => line.trim().split(/\s+/)).filter((fields) => fields.length === 3);
  const pieces = {};
  for (const [, thing, number] of orders) pieces[thing] = (pieces[thing] ?? 0) + Number(number);
  const total = Object.values(pieces).reduce((sum, n) => sum + n, 0);
  return `${orders.length} orders, ${total} pieces: ${Object.entries(pieces).map((each) => each.join(" ")).join(", ")}`;
}

// The reporter calls two tools in one answer and may use only one of them.
function reporter(messages) {
  const [printed, kept] = calls(messages);
  const text = /Print and keep: ([^"\\]*)/.exec(asked(messages))[1];
  if (!printed) return use({ name: "console_print", arguments: { text } }, { name: "write_file", arguments: { path: "figures.txt", content: text } });
  const outcome = (done, { error }) => (error ? `not ${done} (${error})` : done);
  return { content: `The figures were ${outcome("printed", printed.result)} and ${outcome("kept", kept.result)}.` };
}

function use(...toolCalls) {
  return { toolCalls };
}
