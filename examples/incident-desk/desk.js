// The agent script of the incident desk.
//
//   root ──┬── analyst   reads the log and counts
//          ├── clerk     uses the console, and tries a tool that it does not have
//          └── writer    writes the report
//
// The script has one generator per role. A generator yields an operation and gets its
// outcome: `yield call(tool, args)` returns the result of a tool, `yield receive()` the
// next message. Its return value goes to the agent's parent, that of root to the user.

const REPORT = "incident-report.md";

// The roles and the tool groups that their agents can call. The gate denies every other
// tool.
const ROLES = {
  analyst: {
    name: "analyst",
    toolGroups: ["workspace:read", "command"],
    rolePrompt: "You read access logs. Count, never estimate. Say how many lines you could not read.",
  },
  clerk: {
    name: "clerk",
    toolGroups: ["console"],
    rolePrompt: "You keep the desk's console. Report what you could not do, with the reason you were given.",
  },
  writer: {
    name: "writer",
    toolGroups: ["artifact", "workspace"],
    rolePrompt: "You write incident reports for people who were not there. What happened comes first, then the figures.",
  },
};

// ------------------------------------------------------------------ root

role("root", function* (task) {
  const outcome = yield* attempt(investigate(fileIn(task.payload.text)));
  if (outcome.error) return `The desk could not finish. ${outcome.role}: ${outcome.error}: ${outcome.message}`;
  return outcome.summary;
});

function* investigate(file) {
  // Several calls in one step. create_role returns a role that an earlier task created.
  const [analyst, clerk, writer] = (yield [
    call("create_role", ROLES.analyst),
    call("create_role", ROLES.clerk),
    call("create_role", ROLES.writer),
  ]).map(passed);

  // Both work concurrently and answer in any order.
  yield* engage(analyst, `Count what ${file} says.`, analystBrief(file));
  yield* engage(clerk, `Open the case of ${file} and check its size.`, clerkBrief(file));
  const messages = [yield receive(), yield receive()];
  const { figures, check } = Object.assign({}, ...messages.map(answer));

  const { id } = yield* engage(writer, `Write the report on ${file}; the findings follow.`, writerBrief(file));
  passed(yield call("send_message", { to: id, payload: { file, figures, check } }));
  const { report } = answer(yield receive());
  return { summary: summary(file, figures, check, report) };
}

// engage spawns an agent of a role with a brief and a first message.
function* engage(role, task, taskBrief) {
  const initialMessage = { message_type: "task_assignment", task, deliverable: taskBrief.outputs };
  return passed(yield call("spawn_agent_with_task", { roleId: role.id, taskBrief, initialMessage }));
}

function analystBrief(file) {
  return {
    objective: `Find out from ${file} what failed, when, and for whom.`,
    constraints: ["Count every line once.", "Leave lines out that are not in combined format, and say how many."],
    inputs: `${file} in the workspace, an access log in combined format.`,
    outputs: "{figures}",
    completion_criteria: "Parsed and malformed lines together are all lines of the file.",
  };
}

function clerkBrief(file) {
  return {
    objective: `Open the case on the console, and check the size of ${file} with a command.`,
    constraints: ["A refusal is reported, not worked around."],
    inputs: `${file} in the workspace.`,
    outputs: "{check}: what the command said, or the refusal.",
    completion_criteria: "The check was made or refused.",
  };
}

function writerBrief(file) {
  return {
    objective: `Write the incident report on ${file}.`,
    constraints: ["Use only the figures you are given.", "Mention calls that were refused."],
    inputs: "A message {file, figures, check}.",
    outputs: `{report}: where it is, as an artifact and as ${REPORT}.`,
    completion_criteria: "Artifact and file hold the same text.",
  };
}

function summary(file, figures, check, { path, artifactRef }) {
  return [
    `${file}: ${headline(figures)}`,
    `The report is in ${path} and in ${artifactRef}.`,
    checkLine(check),
  ].join("\n");
}

// --------------------------------------------------------------- analyst

role("analyst", function* (task) {
  return yield* attempt(analyse(fileIn(task.payload.task)));
});

function* analyse(file) {
  const size = yield* sizeOf(file);
  const total = emptyTally();
  let length = 250000; // bytes of one piece; read_file returns up to 1,000,000
  for (let offset = 0; offset < size; ) {
    const piece = passed(yield call("read_file", { path: file, offset, length }));
    if (piece.length === 0) break; // the file is shorter than it was
    const last = offset + piece.length >= size;
    const counted = yield call("run_javascript", { code: `return (${count})(input)`, input: { ...piece, last } });
    if (counted.error === "result_too_large" && length > 1000) {
      length = Math.floor(length / 2);
      continue;
    }
    addTally(total, passed(counted));
    offset += counted.used;
  }
  return { figures: conclude(total) };
}

function* sizeOf(file) {
  const parts = file.split("/");
  const name = parts.pop();
  const { entries } = passed(yield call("list_files", { path: parts.join("/") || "." }));
  const entry = entries.find((e) => e.name === name);
  if (!entry) throw { error: "file_not_found", message: `${file} is not in the workspace` };
  return entry.size;
}

// count evaluates one piece of a log. It is sent to run_javascript as source code, so it
// can only use its argument. A line that the piece cuts off belongs to the next piece,
// which begins at the first unused byte.
function count({ content, encoding, length, last }) {
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const quoted = String.raw`"([^"\\]*(?:\\.[^"\\]*)*)"`; // \" does not end a field
  const format = new RegExp(
    String.raw`^([^ ]+) [^ ]+ [^[]+ \[(\d\d)/(${months.join("|")})/(\d{4}):(\d\d:\d\d):\d\d [+-]\d{4}\]` +
    String.raw` ${quoted} (\d)\d\d (\d+|-)(?: ${quoted} ${quoted}(?: .*)?)?$`, "s");

  // A piece that is not UTF-8, or was cut inside a character, comes as base64.
  const binary = encoding === "base64";
  const text = binary ? decode(content) : content;
  const end = last ? text.length : text.lastIndexOf("\n") + 1 || text.length;
  const rest = text.slice(end);

  const found = { parsed: 0, malformed: 0, bytes: 0 };
  const counters = { statuses: new Map(), paths: new Map(), clients: new Map(), requests: new Map(), errors: new Map() };
  for (const line of text.slice(0, end).split(/\r?\n|\r$/)) {
    if (line !== "") read(binary ? characters(line) : line);
  }
  for (const name in counters) found[name] = [...counters[name]];
  found.used = length - (binary ? rest : octets(rest)).length;
  return found;

  function read(line) {
    const fields = format.exec(line);
    if (!fields) {
      found.malformed++;
      return;
    }
    const [, client, day, month, year, time, request, status, size] = fields;
    const minute = `${year}-${String(months.indexOf(month) + 1).padStart(2, "0")}-${day} ${time}`;
    found.parsed++;
    found.bytes += size === "-" ? 0 : Number(size);
    increase("statuses", status + "xx");
    increase("requests", minute);
    if (status === "4") increase("clients", client);
    if (status === "5") increase("paths", pathOf(request));
    if (status === "5") increase("errors", minute);
  }

  function increase(name, key) {
    counters[name].set(key, (counters[name].get(key) || 0) + 1);
  }

  // pathOf returns the path in "GET /lamps?page=2 HTTP/1.1"; text that is not a request
  // line is returned unchanged.
  function pathOf(request) {
    const words = request.split(" ");
    if (words.length > 2 && /^HTTP\/[\d.]+$/.test(words[words.length - 1])) words.pop();
    const target = words.length > 1 ? words.slice(1).join(" ") : request;
    return target.split("?")[0];
  }

  // In a string of octets each character is one byte.
  function octets(characters) {
    return unescape(encodeURIComponent(characters));
  }

  function characters(octets) {
    try {
      return decodeURIComponent(escape(octets));
    } catch {
      return octets; // not UTF-8: read as Latin-1
    }
  }

  function decode(base64) {
    const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const out = [];
    let bits = 0, held = 0;
    for (const digit of base64.replace(/=+$/, "")) {
      bits = ((bits << 6) | digits.indexOf(digit)) & 0xffff;
      held += 6;
      if (held >= 8) out.push(String.fromCharCode((bits >> (held -= 8)) & 0xff));
    }
    return out.join("");
  }
}

const COUNTERS = ["statuses", "paths", "clients", "requests", "errors"];

function emptyTally() {
  const total = { parsed: 0, malformed: 0, bytes: 0 };
  for (const name of COUNTERS) total[name] = new Map();
  return total;
}

function addTally(total, part) {
  for (const name of ["parsed", "malformed", "bytes"]) total[name] += part[name];
  for (const name of COUNTERS) {
    for (const [key, n] of part[name]) total[name].set(key, (total[name].get(key) || 0) + n);
  }
}

// conclude returns the numbers of the report; minutes are those of the log.
function conclude(total) {
  const minutes = [...total.requests.keys()].sort();
  return {
    lines: total.parsed + total.malformed,
    parsed: total.parsed,
    malformed: total.malformed,
    bytes: total.bytes,
    first: minutes[0],
    last: minutes[minutes.length - 1],
    statuses: [...total.statuses].sort(),
    failingPaths: top(5, total.paths),
    refusedClients: top(5, total.clients),
    busiest: top(1, total.requests)[0],
    burst: densestBurst(total.errors),
  };
}

// top returns the n largest counts as [key, count]; equal counts are sorted by key.
function top(n, counts) {
  return [...counts].sort(([a, m], [b, k]) => k - m || (a < b ? -1 : 1)).slice(0, n);
}

// densestBurst returns the burst with the most 5xx responses, the earliest of equal ones,
// or null. A burst ends after three minutes without a 5xx response.
function densestBurst(errors) {
  let best = null, burst = null;
  for (const [minute, n] of [...errors].sort()) {
    if (!burst || minuteNumber(minute) - minuteNumber(burst.last) > 3) burst = { first: minute, errors: 0, peak: [minute, 0] };
    burst.last = minute;
    burst.errors += n;
    if (n > burst.peak[1]) burst.peak = [minute, n];
    if (!best || burst.errors > best.errors) best = burst;
  }
  return best;
}

// minuteNumber converts "2026-03-17 14:03" to minutes. Scripts have no clock, but they can
// calculate with dates.
function minuteNumber(text) {
  const [year, month, day, hour, minute] = text.split(/[- :]/).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute) / 60000;
}

// ----------------------------------------------------------------- clerk

role("clerk", function* (task) {
  return yield* attempt(keepConsole(task.payload.task, fileIn(task.payload.task)));
});

function* keepConsole(task, file) {
  passed(yield call("console_print", { text: `incident desk: ${task}` }));

  // A clerk only has the console, so the gate denies this call. A denial is a result like
  // any other; the clerk reports it.
  const size = yield call("run_command", { command: `wc -c ${file}` });
  if (size.error) return { check: { tool: "run_command", denied: { error: size.error, message: size.message } } };
  return { check: { tool: "run_command", said: size.stdout } };
}

// ---------------------------------------------------------------- writer

role("writer", function* () {
  return yield* attempt(write());
});

function* write() {
  const { file, figures, check } = answer(yield receive());
  const text = compose(file, figures, check);
  const [kept, written] = (yield [
    call("put_artifact", { type: "report", content: text, meta: { title: `Incident report: ${file}`, mediaType: "text/markdown" } }),
    call("write_file", { path: REPORT, content: text }),
  ]).map(passed);
  return { report: { artifactRef: kept.artifactRef, path: written.path } };
}

function compose(file, figures, check) {
  return [
    `# Incident report: ${file}`,
    headline(figures),
    ...(figures.parsed ? [story(figures), "## Figures", figureTable(figures), ...details(figures)] : []),
    "## How this was made",
    method(figures),
    checkLine(check),
  ].join("\n\n") + "\n";
}

function headline({ parsed, statuses, burst }) {
  if (!parsed) return "No line in combined format was found, so there is nothing to report.";
  if (!burst) return `${comma(parsed)} requests, and none of them failed with a server error.`;
  const errors = countOf(statuses, "5xx");
  return `${comma(errors)} of ${comma(parsed)} requests (${share(errors, parsed)}) failed with a server error, ` +
    `${comma(burst.errors)} of them ${burst.first === burst.last ? `at ${burst.first}` : `between ${burst.first} and ${burst.last}`}.`;
}

function story({ failingPaths, refusedClients, busiest, burst, statuses }) {
  const told = [`The busiest minute was ${busiest[0]} with ${counted(busiest[1], "request")}.`];
  if (burst) {
    const [path, n] = failingPaths[0];
    told.push(`The errors peaked at ${burst.peak[0]} with ${comma(burst.peak[1])} in one minute.`,
      `${quote(path)} had the most over the whole log: ${comma(n)} (${share(n, countOf(statuses, "5xx"))} of them all).`);
  }
  if (refusedClients.length) {
    const [client, n] = refusedClients[0];
    told.push(`Most refusals went to ${quote(client)}: ${comma(n)} of ${counted(countOf(statuses, "4xx"), "4xx answer")}.`);
  }
  return told.join(" ");
}

function figureTable({ lines, parsed, malformed, bytes, first, last, statuses, busiest, burst }) {
  return table(["Figure", "Value"], [
    ["Lines", comma(lines)],
    ["Parsed", comma(parsed)],
    ["Malformed", comma(malformed)],
    ["Period", `${first} to ${last}`],
    ...statuses.map(([name, n]) => [name, `${comma(n)} (${share(n, parsed)})`]),
    ["Bytes sent", comma(bytes)],
    ["Busiest minute", `${busiest[0]} (${counted(busiest[1], "request")})`],
    ["Densest burst of 5xx", burst ? `${burst.first} to ${burst.last} (${counted(burst.errors, "error")})` : "none"],
  ]);
}

function details({ failingPaths, refusedClients }) {
  const parts = [];
  const rows = (counts) => counts.map(([key, n]) => [quote(key), comma(n)]);
  if (failingPaths.length) parts.push("## Paths that failed most (5xx)", table(["Path", "Errors"], rows(failingPaths)));
  if (refusedClients.length) parts.push("## Clients refused most (4xx)", table(["Client", "Refusals"], rows(refusedClients)));
  return parts;
}

function method({ lines, malformed }) {
  return `An analyst counted all ${comma(lines)} lines; ${comma(malformed)} of them are not in combined format and in no other figure. ` +
    "Blank lines are not counted, times are the log's own, paths are without their query. " +
    "A burst of 5xx goes on through up to two minutes without one.";
}

function checkLine({ tool, denied, said }) {
  if (denied) return `The clerk's call of ${quote(tool)} was denied: ${quote(denied.error)}: ${denied.message}`;
  return `The clerk checked the size with ${quote(tool)}: ${quote(said.trim())}`;
}

// ------------------------------------------------------- common functions

// fileIn returns the file name in a sentence.
function fileIn(text) {
  const named = /[\w.\/-]+\.log\b/.exec(text || "");
  return named ? named[0] : "access.log";
}

// passed returns a result and throws an error result, for calls whose result is required.
function passed(result) {
  if (result && result.error) throw result;
  return result;
}

// answer returns the payload of an agent's message. It throws the agent's {error}, or the
// runtime's notice that the agent has failed.
function answer({ payload }) {
  if (payload && payload.kind === "error") throw { error: payload.errorType, message: payload.message };
  return passed(payload);
}

// attempt runs a generator and converts what passed has thrown to an answer:
// {error, message, role}.
function* attempt(work) {
  try {
    return yield* work;
  } catch (failure) {
    if (!failure.error) throw failure;
    return { error: failure.error, message: failure.message || "no reason given", role: failure.role || self.role };
  }
}

function countOf(counts, key) {
  const found = counts.find(([name]) => name === key);
  return found ? found[1] : 0;
}

function comma(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function counted(n, what) {
  return `${comma(n)} ${what}${n === 1 ? "" : "s"}`;
}

function share(n, of) {
  return `${(of ? (100 * n) / of : 0).toFixed(1)} %`;
}

function table(head, rows) {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

// quote makes text of the log safe in Markdown: clients control it and must not be able to
// change the report.
function quote(text) {
  const plain = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ").replace(/`/g, "'").replace(/\|/g, "\\|").trim();
  const short = plain.length > 100 ? plain.slice(0, 99) + "…" : plain;
  return short ? `\`${short}\`` : "(nothing)";
}
