// The place of the page is the fragment of its address: #/SCREEN/ID?name=value. It holds all
// state that a link should keep: the screen, the selection and the filters.

/** @typedef {{screen: string, id: string, params: Record<string, string>}} Place */

/** @returns {Place} */
export function currentPlace() {
  return parsePlace(location.hash);
}

/**
 * @param {string} hash
 * @returns {Place}
 */
export function parsePlace(hash) {
  const [path, query = ""] = splitOnce(hash.replace(/^#?\/?/, ""), "?");
  const [screen, id = ""] = splitOnce(path, "/");
  return { screen: decode(screen) || "organization", id: decode(id), params: Object.fromEntries(new URLSearchParams(query)) };
}

/**
 * Returns the link to a place. Empty parameters are left out.
 * @param {string} screen
 * @param {string} [id]
 * @param {Record<string, string | undefined>} [params]
 */
export function placeLink(screen, id = "", params = {}) {
  const kept = Object.entries(params).filter(([, value]) => value);
  const query = new URLSearchParams(/** @type {[string, string][]} */ (kept)).toString();
  return "#/" + encodeURIComponent(screen) + (id ? "/" + encodeURIComponent(id) : "") + (query ? "?" + query : "");
}

/**
 * Returns the link to a role. That of root is fixed: it leads to what root may call.
 * @param {string} role its id or name
 */
export function roleLink(role) {
  return role === "root" ? placeLink("access", "", { role }) : placeLink("roles", role);
}

/**
 * Goes to a place. The browser's Back returns.
 * @param {string} screen
 * @param {string} [id]
 * @param {Record<string, string | undefined>} [params]
 */
export function goTo(screen, id, params) {
  location.hash = placeLink(screen, id, params);
}

/**
 * Changes parameters of the current place, without an entry for Back.
 * @param {Record<string, string | undefined>} changes
 */
export function setParams(changes) {
  const { screen, id, params } = currentPlace();
  history.replaceState(null, "", placeLink(screen, id, { ...params, ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/**
 * @param {string} text
 * @param {string} at
 * @returns {string[]} one or two parts
 */
function splitOnce(text, at) {
  const i = text.indexOf(at);
  return i < 0 ? [text] : [text.slice(0, i), text.slice(i + 1)];
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
