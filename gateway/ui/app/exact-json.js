// JSON with its numbers as they are written: those of bounds may have more digits than a number of
// JavaScript. Pure: without a browser.

/** Whether this browser can keep numbers as they are written. */
export const keepsNumbers = "rawJSON" in JSON;

/**
 * Parses JSON. JSON.stringify writes the numbers of the value as they were.
 * @param {string} text
 * @returns {any}
 */
export function parseExact(text) {
  const { rawJSON } = /** @type {any} */ (JSON);
  const keep = (/** @type {string} */ _, /** @type {any} */ value, /** @type {{source?: string} | undefined} */ context) =>
    rawJSON && typeof value === "number" && context?.source && context.source !== String(value) ? rawJSON(context.source) : value;
  return JSON.parse(text, /** @type {any} */ (keep));
}
