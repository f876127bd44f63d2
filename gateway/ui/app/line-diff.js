// The difference of two texts by lines. Pure: without a browser.

/** @typedef {{kind: "same" | "added" | "removed", text: string}} Line */

const linesMost = 2000; // of each text; the rest is left out

/**
 * @param {string} before
 * @param {string} after
 * @returns {Line[]}
 */
export function lineDiff(before, after) {
  const a = before === "" ? [] : before.split("\n").slice(0, linesMost), b = after.split("\n").slice(0, linesMost);
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
