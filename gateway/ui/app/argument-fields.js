// The arguments of a call as fields, one for each name. The text of a field that is not changed stays as it is,
// with all digits of numbers and all escapes. Pure: without a browser.

/**
 * @typedef {object} Field
 * @property {string} key the name as JSON, with its quotes
 * @property {"text" | "number" | "boolean" | "json"} kind
 * @property {string} source the value as JSON
 * @property {string} was what the field has at first: the text of a string, and JSON of other values
 * @property {string} now what the field has
 */

const entryBegin = /^ {2}("(?:[^"\\]|\\.)*"): (.*)$/;
const numberText = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const seen = /^(?:(?![\p{Default_Ignorable_Code_Point}\u2800])[\p{L}\p{M}\p{N}\p{P}\p{S} \n\t])*$/u; // all characters of it are visible, or make space
const unseen = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|[\p{Default_Ignorable_Code_Point}\u2800]/gu;

/**
 * Returns the fields of an object. It returns undefined if the text would not be the same again.
 * @param {string} text JSON, indented by two spaces
 * @returns {Field[] | undefined}
 */
export function fieldsOf(text) {
  const fields = /** @type {Field[]} */ ([]);
  for (const [key, source] of entriesOf(text)) {
    const kind = kindOf(source), was = kind === "text" ? JSON.parse(source) : source;
    fields.push({ key, kind, source, was, now: was });
  }
  return textOf(fields) === text ? fields : undefined;
}

/**
 * Returns the names and values of an object, as JSON. No string of JSON has a line break in it.
 * @param {string} text
 */
function entriesOf(text) {
  const entries = /** @type {[string, string][]} */ ([]);
  for (const line of text.split("\n").slice(1, -1)) {
    const begin = entryBegin.exec(line), last = entries.at(-1);
    if (begin) {
      entries.push([begin[1], begin[2]]);
    } else if (last) {
      last[1] += "\n" + line.slice(2);
    }
  }
  return entries.map(([key, source], i) => /** @type {[string, string]} */ ([key, i < entries.length - 1 ? source.replace(/,$/, "") : source]));
}

/** @param {string} source */
function kindOf(source) {
  if (source === "true" || source === "false") {
    return "boolean";
  }
  if (numberText.test(source)) {
    return "number";
  }
  return source.startsWith('"') && seen.test(JSON.parse(source)) ? "text" : "json";
}

/**
 * Returns the arguments as JSON, indented. It returns undefined if a field has no value of its kind.
 * @param {Field[]} fields
 */
export function textOf(fields) {
  if (fields.some(isWrong)) {
    return undefined;
  }
  return fields.length === 0 ? "{}" : `{\n${fields.map((f) => `  ${f.key}: ${valueOf(f).replaceAll("\n", "\n  ")}`).join(",\n")}\n}`;
}

/** @param {Field} f */
function valueOf(f) {
  if (f.now === f.was) {
    return f.source;
  }
  return f.kind === "text" ? escapeUnseen(JSON.stringify(f.now)) : f.now.trim();
}

/**
 * Escapes the characters of JSON that a screen does not show.
 * @param {string} text
 */
function escapeUnseen(text) {
  return text.replace(unseen, (c) => [...Array(c.length).keys()].map((i) => "\\u" + c.charCodeAt(i).toString(16).padStart(4, "0")).join(""));
}

/**
 * Says what is wrong with a field, "" if nothing is.
 * @param {Field} f
 */
export function problemOf(f) {
  if (!isWrong(f)) {
    return "";
  }
  return f.kind === "number" ? "This is no number of JSON." : "This is no JSON.";
}

/** @param {Field} f */
function isWrong(f) {
  if (f.now === f.was || f.kind === "text" || f.kind === "boolean") {
    return false;
  }
  return f.kind === "number" ? !numberText.test(f.now.trim()) : !isJSON(f.now);
}

/** @param {string} text */
function isJSON(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
