// The difference of two texts by lines. Pure: without a browser.

/** @typedef {{kind: "same" | "added" | "removed", text: string}} Line */

const linesMost = 1000; // of each text that are compared with each other

/**
 * Returns all lines of both texts. If more than linesMost lines are between the equal lines at the
 * beginning and at the end, those of the first text are removed and those of the second are added.
 * @param {string} before
 * @param {string} after
 * @returns {Line[]}
 */
export function lineDiff(before, after) {
  const a = before === "" ? [] : before.split("\n"), b = after.split("\n");
  let begin = 0, end = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) {
    begin++;
  }
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) {
    end++;
  }
  const same = (/** @type {string[]} */ lines) => lines.map((text) => /** @type {Line} */ ({ kind: "same", text }));
  return [...same(a.slice(0, begin)), ...middleDiff(a.slice(begin, a.length - end), b.slice(begin, b.length - end)), ...same(a.slice(a.length - end))];
}

/**
 * @param {string[]} a
 * @param {string[]} b
 * @returns {Line[]}
 */
function middleDiff(a, b) {
  if (a.length > linesMost || b.length > linesMost) {
    return [...a.map((text) => /** @type {Line} */ ({ kind: "removed", text })), ...b.map((text) => /** @type {Line} */ ({ kind: "added", text }))];
  }
  const common = commonLengths(a, b);
  const lines = /** @type {Line[]} */ ([]);
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i] });
      i++, j++;
    } else if (j < b.length && (i === a.length || common[i][j + 1] > common[i + 1][j])) {
      lines.push({ kind: "added", text: b[j++] });
    } else {
      lines.push({ kind: "removed", text: a[i++] });
    }
  }
  return lines;
}

/**
 * Returns the lengths of the longest common subsequences of all ends of two lists.
 * @param {string[]} a
 * @param {string[]} b
 */
function commonLengths(a, b) {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  return lengths;
}
