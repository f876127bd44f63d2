// Requests to the gateway. All addresses are relative to the page, so that the page works
// below a path prefix.

/** An error that the gateway has answered, or a request that got no answer (status 0). */
export class RequestError extends Error {
  /**
   * @param {number} status HTTP status, 0 if there was no answer
   * @param {string} code error code, such as role_not_found
   * @param {string} message
   * @param {Record<string, any>} [details]
   */
  constructor(status, code, message, details = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** The text that requests with changes must carry; "" without a session. */
let csrf = "";

/** @param {string | undefined} text the csrf of the session */
export function setCSRF(text) {
  csrf = text ?? "";
}

/** @typedef {Record<string, string | number | boolean | string[] | undefined>} Query */

/**
 * Returns a path with query parameters. Undefined and empty ones are left out.
 * @param {string} path
 * @param {Query} query
 */
export function address(path, query = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== "" && one !== false) {
        params.append(name, String(one));
      }
    }
  }
  const text = params.toString();
  return text ? path + "?" + text : path;
}

/**
 * @param {string} path relative to the page, such as api/v1/roles
 * @param {Query} [query]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>} the JSON of the answer
 */
export async function get(path, query, signal) {
  return (await request("GET", address(path, query), undefined, {}, signal)).body;
}

/**
 * Sends a change.
 * @param {string} method
 * @param {string} path
 * @param {any} [body] sent as JSON; a text is JSON already
 * @param {Record<string, string>} [headers]
 * @returns {Promise<any>}
 */
export async function send(method, path, body, headers = {}) {
  return (await request(method, path, body, headers)).body;
}

/**
 * Returns an answer with its text and its ETag, which If-Match repeats to change what was read.
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<{body: any, text: string, etag: string}>}
 */
export async function getTagged(path, signal) {
  const { body, text, response } = await request("GET", path, undefined, {}, signal);
  return { body, text, etag: response.headers.get("ETag") ?? "" };
}

/**
 * Reads the items of a list, page by page, up to a number.
 * @param {string} path
 * @param {Query} query
 * @param {number} most
 * @param {AbortSignal} [signal]
 * @returns {Promise<{items: any[], more: boolean, last: any}>} more reports whether there are others; last is the last page
 */
export async function list(path, query, most, signal) {
  const items = [];
  let last;
  do {
    last = await get(path, { ...query, limit: Math.min(1000, most - items.length), cursor: last?.next }, signal);
    items.push(...last.items);
  } while (last.next && items.length < most);
  return { items, more: Boolean(last.next), last };
}

/**
 * @param {string} method
 * @param {string} path
 * @param {any} body
 * @param {Record<string, string>} headers
 * @param {AbortSignal} [signal]
 */
async function request(method, path, body, headers, signal) {
  /** @type {Record<string, string>} */
  const sent = { Accept: "application/json", ...headers };
  if (method !== "GET" && csrf) {
    sent["X-Rolecall-CSRF"] = csrf;
  }
  if (body !== undefined) {
    sent["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, {
      method, headers: sent, signal, body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      credentials: "same-origin", redirect: "error",
    });
  } catch (cause) {
    if (signal?.aborted) {
      throw cause;
    }
    throw new RequestError(0, "no_answer", "The gateway did not answer. It may have ended, or the network may be down.");
  }
  return { ...await readBody(response), response };
}

/** @param {Response} response */
async function readBody(response) {
  if (response.status === 204) {
    return { body: null, text: "" };
  }
  const text = await response.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RequestError(response.status, "bad_answer", `The answer is not JSON (status ${response.status}).`);
  }
  if (!response.ok) {
    const error = value?.error ?? {};
    throw new RequestError(response.status, String(error.code ?? "error"), String(error.message ?? "The request failed."), error.details);
  }
  return { body: value, text };
}
