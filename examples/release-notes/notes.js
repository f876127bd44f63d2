// The agent script of the release notes: three levels, with fewer permissions on each.
//
//   root ──┬── editor ──┬── reader   the newer half of the commits
//          │            └── reader   the older half
//          └── scribe               writes the notes to a file
//
// Root can only organize, but it can grant everything. The editor can only organize too;
// its role lists what it can grant, and no role that it creates gets more. The readers do
// the work and can grant nothing. The scribe's role is declared in organization.yaml.

const NOTES = "RELEASE_NOTES.md";

const EDITOR = {
  name: "editor",
  toolGroups: ["org_management"],
  grant: ["org_management", "workspace:read", "command"],
  rolePrompt: "You make release notes. Let readers read, and put together what they found.",
};

// org_management lets a reader send a message to the other one. Without a grant it cannot
// spawn agents.
const READER = {
  name: "reader",
  toolGroups: ["org_management", "workspace:read", "command"],
  grant: [],
  rolePrompt: "You read commits by the rules of conventional commits and leave the wording as it is.",
};

// ------------------------------------------------------------------ root

role("root", function* (task) {
  const outcome = yield* attempt(publish(task.payload.text));
  if (outcome.error) return `There are no release notes. ${outcome.role}: ${outcome.error}: ${outcome.message}`;
  return outcome.notes;
});

function* publish(text) {
  const file = (/[\w.\/-]+\.txt\b/.exec(text) || ["commits.txt"])[0];
  const version = (/\b\d+\.\d+(\.\d+)?\b/.exec(text) || ["of the next version"])[0];

  const writerRole = passed(yield call("find_role_by_name", { name: "scribe" }));
  if (!writerRole) throw { error: "role_not_found", message: "organization.yaml declares no role scribe" };
  const editorRole = passed(yield call("create_role", EDITOR));

  const editor = passed(yield call("spawn_agent", { roleId: editorRole.id, taskBrief: editorBrief(file, version) }));
  passed(yield call("send_message", { to: editor.id, payload: { file, version } }));
  const { notes } = answer(yield receive());
  yield say(`The notes are edited; they are being written to ${NOTES}.`);

  const writer = passed(yield call("spawn_agent", { roleId: writerRole.id, taskBrief: writerBrief() }));
  passed(yield call("send_message", { to: writer.id, payload: { path: NOTES, content: notes } }));
  answer(yield receive());
  return { notes };
}

function editorBrief(file, version) {
  return {
    objective: `Make the release notes ${version} of ${file}.`,
    constraints: ["Every feature, fix and breaking change once.", "Nothing that was taken back."],
    inputs: "A message {file, version}.",
    outputs: "{notes}: Markdown.",
    completion_criteria: "Every commit is in the notes or in a count.",
  };
}

function writerBrief() {
  return {
    objective: "Write a text into a file.",
    constraints: ["Do not change the text."],
    inputs: "A message {path, content}.",
    outputs: "{path, size}",
    completion_criteria: "The file holds the text.",
  };
}

// ---------------------------------------------------------------- editor

role("editor", function* (task) {
  return yield* attempt(edit(task.payload));
});

function* edit({ file, version }) {
  const role = passed(yield call("create_role", READER));
  const older = passed(yield call("spawn_agent", { roleId: role.id, taskBrief: readerBrief(file, "older") }));
  const newer = passed(yield call("spawn_agent", { roleId: role.id, taskBrief: readerBrief(file, "newer", older) }));

  // The older half starts first: it must know its task before the newer one writes to it.
  passed(yield call("send_message", { to: older.id, payload: { file, half: "older" } }));
  passed(yield call("send_message", { to: newer.id, payload: { file, half: "newer", partner: older.id } }));

  const heard = {};
  while (!heard[older.id] || !heard[newer.id]) {
    const message = yield receive();
    heard[message.from] = message;
    // A failed reader sends its partner no reverts: let the partner continue without.
    if (message.from === newer.id && isFailure(message.payload)) {
      passed(yield call("send_message", { to: older.id, payload: { reverts: [] } }));
    }
  }
  return { notes: compose(version, merge(answer(heard[newer.id]), answer(heard[older.id]))) };
}

function readerBrief(file, half, partner) {
  const brief = {
    objective: `Find features, fixes and breaking changes in the ${half} half of ${file}.`,
    constraints: ["A half is a half of the lines, the newer ones stand first.", "What was taken back does not count, in whichever half it stands."],
    inputs: "A message {file, half, partner}; for the older half another one, {reverts}, from the reader of the newer half.",
    outputs: "{entries, reverts, people, dates, commits, unreadable}",
    completion_criteria: "Every line of the half was looked at.",
  };
  // An agent can send messages to its parent and to the collaborators of its brief.
  if (partner) brief.collaborators = [{ agentId: partner.id, role: "reader", description: "reads the older half and needs your reverts" }];
  return brief;
}

function merge(newer, older) {
  return {
    commits: newer.commits + older.commits,
    unreadable: newer.unreadable + older.unreadable,
    entries: [...newer.entries, ...older.entries],
    withdrawn: [...newer.withdrawn, ...older.withdrawn],
    people: [...new Set([...newer.people, ...older.people])].sort(),
    dates: [...newer.dates, ...older.dates].sort(),
  };
}

function compose(version, { commits, unreadable, entries, withdrawn, people, dates }) {
  const breaking = entries.filter((e) => e.breaking);
  const of = (type) => entries.filter((e) => e.type === type && !e.breaking);
  const rest = commits - entries.length - withdrawn.length;
  return [
    `# Release notes ${version}`,
    commits ? `${commits} commits by ${people.length} people, ${dates[0]} to ${dates[dates.length - 1]}.` : "No commits.",
    ...section("Breaking changes", breaking),
    ...section("New", of("feat")),
    ...section("Fixed", of("fix")),
    ...section("Faster", of("perf")),
    ...section("Taken back before the release", withdrawn),
    "## Everything else",
    `${rest} further commits are documentation, tests, maintenance and reverts. ${unreadable} lines could not be read as commits.`,
    `Thanks to ${people.join(", ") || "nobody yet"}.`,
  ].join("\n\n") + "\n";
}

function section(title, entries) {
  if (!entries.length) return [];
  const byScope = [...entries].sort((a, b) => (a.scope < b.scope ? -1 : a.scope > b.scope ? 1 : 0));
  return [`## ${title}`, byScope.map(({ scope, text, hash }) => `- ${scope ? `**${scope}**: ` : ""}${text} \`${hash}\``).join("\n")];
}

// ---------------------------------------------------------------- reader

role("reader", function* (task) {
  const { file, half, partner } = task.payload;
  const found = yield* attempt(readHalf(file, half));

  // A revert is newer than the commit it reverts, which can be in either half.
  if (half === "older") {
    const { payload } = yield receive();
    return isFailure(found) ? found : withdraw(found, payload.reverts);
  }
  if (isFailure(found)) return found;
  const told = yield call("send_message", { to: partner, payload: { reverts: found.reverts } });
  return isFailure(told) ? { ...told, role: self.role } : withdraw(found, []);
});

function* readHalf(file, half) {
  const { content, encoding, length, size } = passed(yield call("read_file", { path: file, length: 1000000 }));
  if (length < size) throw { error: "file_too_large", message: `${file} has ${size} bytes, a reader reads ${length}` };
  if (encoding === "base64") throw { error: "not_text", message: `${file} is not UTF-8` };

  const lines = content.split(/\r?\n/).filter((line) => line !== "");
  const middle = Math.ceil(lines.length / 2);
  const mine = half === "newer" ? lines.slice(0, middle) : lines.slice(middle);

  const found = { commits: 0, unreadable: 0, entries: [], reverts: [], people: [], dates: [] };
  for (let i = 0; i < mine.length; i += 500) { // a result has a limit of 200,000 characters
    const part = passed(yield call("run_javascript", { code: `return (${parse})(input)`, input: mine.slice(i, i + 500) }));
    for (const key in found) found[key] = Array.isArray(found[key]) ? found[key].concat(part[key]) : found[key] + part[key];
  }
  return found;
}

// parse reads lines of the form "hash TAB date TAB author TAB subject". It is sent to
// run_javascript as source code, so it can only use its argument.
function parse(lines) {
  const subject = /^(\w+)(?:\(([^)]*)\))?(!?): (.+)$/;
  const found = { commits: 0, unreadable: 0, entries: [], reverts: [] };
  const people = new Set(), dates = new Set();
  for (const line of lines) {
    const [hash, date, author, text, ...more] = line.split("\t");
    if (!text || more.length) {
      found.unreadable++;
      continue;
    }
    found.commits++;
    people.add(author);
    dates.add(date);
    const reverted = /\(reverts ([0-9a-f]{7,40})\)/.exec(text);
    if (reverted) found.reverts.push(reverted[1]);
    const parts = subject.exec(text);
    if (!parts) continue;
    const [, type, scope, mark, what] = parts;
    if (mark || ["feat", "fix", "perf"].includes(type)) {
      found.entries.push({ hash, type, scope: scope || "", breaking: mark === "!", text: what });
    }
  }
  return { ...found, people: [...people], dates: [...dates] };
}

// withdraw removes the entries that were reverted, in this or in the newer half.
function withdraw(found, others) {
  const reverts = new Set([...found.reverts, ...others]);
  return {
    ...found,
    entries: found.entries.filter((e) => !reverts.has(e.hash)),
    withdrawn: found.entries.filter((e) => reverts.has(e.hash)),
  };
}

// ---------------------------------------------------------------- writer

role("scribe", function* (task) {
  const { path, content } = task.payload;
  const written = yield call("write_file", { path, content });
  return isFailure(written) ? { ...written, role: self.role } : { path: written.path, size: written.size };
});

// ------------------------------------------------------- common functions

// isFailure reports whether an outcome is an error result, an agent's {error}, or the
// runtime's notice that an agent has failed.
function isFailure(outcome) {
  return Boolean(outcome && (outcome.error || outcome.kind === "error"));
}

// passed returns an outcome and throws a failure, for outcomes that are required.
function passed(outcome) {
  if (isFailure(outcome)) throw outcome;
  return outcome;
}

function answer(message) {
  return passed(message.payload);
}

// attempt runs a generator and converts what passed has thrown to an answer:
// {error, message, role}.
function* attempt(work) {
  try {
    return yield* work;
  } catch (failure) {
    if (!failure.error && !failure.errorType) throw failure;
    return { error: failure.error || failure.errorType, message: failure.message || "no reason given", role: failure.role || self.role };
  }
}
