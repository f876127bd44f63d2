// Texts for values. All functions are pure.

/**
 * @param {number} n
 * @returns {string} with a separator for thousands
 */
export function number(n) {
  return n.toLocaleString("en-US");
}

const units = /** @type {[string, number][]} */ ([["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]]);

/**
 * Returns a duration with two units at most, such as 1 h 5 min.
 * @param {number} ms
 */
export function duration(ms) {
  if (ms < 1000) {
    return `${Math.max(0, Math.round(ms))} ms`;
  }
  if (ms < 60_000) {
    return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  }
  const at = units.findIndex(([, size]) => ms >= size);
  const [name, size] = units[at];
  const rest = units[at + 1] ? Math.floor((ms % size) / units[at + 1][1]) : 0;
  return `${Math.floor(ms / size)} ${name}` + (rest ? ` ${rest} ${units[at + 1][0]}` : "");
}

/**
 * Returns durations as texts. Neighbours that would have the same text are precise to the millisecond.
 * @param {number[]} list sorted
 */
export function distinctDurations(list) {
  const texts = list.map(duration);
  return list.map((ms, i) => texts[i] === texts[i - 1] || texts[i] === texts[i + 1] ? preciseDuration(ms) : texts[i]);
}

/**
 * Returns a duration with all its units, to the millisecond, such as 5 min 7.25 s.
 * @param {number} ms
 */
function preciseDuration(ms) {
  const seconds = Number(((ms % 60_000) / 1000).toFixed(3));
  const whole = units.slice(0, -1).map(([name, size], i) => [Math.floor((i ? ms % units[i - 1][1] : ms) / size), name]).filter(([n]) => n);
  return [...whole, [seconds, "s"]].map((part) => part.join(" ")).join(" ");
}

/**
 * Returns how long ago a time was, such as 3 min ago.
 * @param {number} then milliseconds since 1970
 * @param {number} now
 */
export function ago(then, now) {
  const ms = now - then;
  if (Math.abs(ms) < 5000) {
    return "now";
  }
  const text = duration(1000 * Math.round(Math.abs(ms) / 1000)).replace(".0", "").split(" ").slice(0, 2).join(" ");
  return ms > 0 ? text + " ago" : "in " + text;
}

/**
 * Returns a time in UTC, such as 2026-01-31 08:00:00.
 * @param {string | number | Date} at
 */
export function utc(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 19).replace("T", " ");
}

/**
 * Returns a time in UTC with its milliseconds, such as 2026-01-31 08:00:00.000.
 * @param {string | number | Date} at
 */
export function preciseTime(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 23).replace("T", " ");
}

/** @param {string | number | Date} at */
export function clock(at) {
  return utc(at).slice(11);
}

/**
 * Returns the last part of an id. Ids begin with their time, so that their ends differ.
 * @param {string} id
 */
export function shortId(id) {
  return id.length > 12 ? "…" + id.slice(-8) : id;
}

/** @param {number} n bytes */
export function bytes(n) {
  for (const [name, size] of /** @type {[string, number][]} */ ([["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]])) {
    if (n >= size) {
      return `${(n / size).toFixed(1)} ${name}`;
    }
  }
  return `${n} B`;
}

/**
 * Returns the first characters of a text on one line.
 * @param {string} text
 * @param {number} most
 */
export function excerpt(text, most) {
  const line = text.slice(0, 4 * most).replace(/\s+/g, " ").trim();
  return line.length > most ? line.slice(0, most - 1) + "…" : line;
}

/**
 * Returns a JSON value as a short text.
 * @param {any} value
 * @param {number} most
 */
export function brief(value, most) {
  return value === undefined ? "" : excerpt(typeof value === "string" ? value : JSON.stringify(value), most);
}

/**
 * Returns the text of a message or a result: of a value such as {"text": "…"}, or a text itself.
 * @param {any} value
 * @returns {{text: string | undefined, rest: any}} rest has the other fields that have a value, or is undefined
 */
export function bodyOf(value) {
  if (typeof value === "string") {
    return { text: value, rest: undefined };
  }
  if (typeof value?.text !== "string") {
    return { text: undefined, rest: value };
  }
  const rest = Object.entries(value).filter(([name, one]) => name !== "text" && name !== "message_type" && JSON.stringify(one) !== "{}");
  return { text: value.text, rest: rest.length ? Object.fromEntries(rest) : undefined };
}

/**
 * Returns a word of a command line, quoted for a shell if it has to be.
 * @param {string} word
 */
function shellWord(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", `'\\''`) + "'";
}

/**
 * Returns a command line of rolecall.
 * @param {...string} words
 */
export function command(...words) {
  return ["rolecall", ...words].map(shellWord).join(" ");
}

/**
 * Returns "1 role", "2 roles".
 * @param {number} n
 * @param {string} noun
 */
export function count(n, noun) {
  return `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/**
 * Returns JSON in the form of JSON.stringify with two spaces, and the text itself if its values would change.
 * @param {string} text
 */
export function sameJSON(text) {
  try {
    const value = JSON.parse(text), one = JSON.stringify(value);
    return text.replace(/\s/g, "") === one.replace(/\s/g, "") ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}
