// The names of callers with those of their roles. A record has the id of a caller's role.

import { list } from "./api.js";

const rolesRead = 5000;

const names = new Map([["root", "root"]]); // of roles, by id
const asked = /** @type {Set<string>} */ (new Set()); // ids for which the roles were read
let mayRead = false, reading = false;
let redraw = () => {};

/**
 * Begins for a user. Operators may read all roles; others know the name of theirs.
 * @param {any} session
 * @param {() => void} draw is called when names have become known
 */
export function beginNames({ operator, roleId, role }, draw) {
  mayRead = operator;
  redraw = draw;
  if (roleId && role) {
    names.set(roleId, role);
  }
}

/**
 * Returns the name of a role, "" if it is not known. The roles are read when a name is missed.
 * @param {string} id
 * @returns {string}
 */
export function roleName(id) {
  if (!names.has(id) && mayRead && !asked.has(id)) {
    asked.add(id);
    if (!reading) {
      reading = true;
      setTimeout(readNames); // once for all ids of a drawing
    }
  }
  return names.get(id) ?? "";
}

async function readNames() {
  reading = false;
  try {
    for (const { id, name } of (await list("api/v1/roles", {}, rolesRead)).items) {
      names.set(id, name);
    }
    redraw();
  } catch {
    // The ids are shown.
  }
}

/**
 * Returns a caller in words, such as "eve in role reader" for user:eve@ID. One of whose role the
 * name is not known stays as it is.
 * @param {string} principal
 * @returns {string}
 */
export function callerName(principal) {
  const [, user, id] = /^user:(.*)@([^@]+)$/.exec(principal) ?? [];
  const role = id && roleName(id);
  return role ? `${user} in role ${role}` : principal;
}

/**
 * Returns the name of a caller without its role, such as fay of user:fay@ROLE.
 * @param {string} principal
 */
export function personName(principal) {
  return principal.replace(/^user:(.*)@[^@]*$/, "$1");
}
