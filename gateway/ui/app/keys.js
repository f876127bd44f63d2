// Keys that work on all screens.

import { html } from "../vendor/lit-html/lit-html.js";
import { ask } from "./dialog.js";
import { openActions } from "./palette.js";
import { currentPlace, goTo, setParams } from "./place.js";

const stored = "rolecall-keys";
let goPressed = 0; // when g was pressed, in milliseconds since 1970

/** @param {EventTarget | null} target */
export function isTyping(target) {
  return target instanceof HTMLElement && (target.matches("input:not([type=checkbox]), textarea, select") || target.isContentEditable);
}

/** Single letters can be turned off, since programs for speech input send them. */
function lettersAreOff() {
  return localStorage.getItem(stored) === "off";
}

/**
 * Handles a key. It reports whether the key was used.
 * @param {KeyboardEvent} e
 * @param {import("./screen.js").Screen[]} screens
 * @returns {boolean}
 */
export function navigationKeys(e, screens) {
  if (lettersAreOff() && e.key.length === 1) {
    return true;
  }
  const going = Date.now() - goPressed < 1500;
  goPressed = 0;
  if (going) {
    const screen = screens.find((s) => s.key === e.key);
    if (screen) {
      goTo(screen.id);
    }
    return Boolean(screen);
  }
  switch (e.key) {
    case "g": goPressed = Date.now(); return true;
    case "?": showKeys(screens); return true;
    case ".": return openActions();
    case "/": return focusOn("[data-filter]");
    case "Escape": return goBack();
    case "j": case "k": return moveRow(e.key === "j" ? 1 : -1);
  }
  return false;
}

/** @param {string} selector */
function focusOn(selector) {
  const field = /** @type {HTMLElement | null} */ (document.querySelector(selector));
  field?.focus();
  return field !== null;
}

/** Closes the event that is open, or else leaves the selection of a screen. */
function goBack() {
  const { screen, id, params } = currentPlace();
  if (params.event) {
    setParams({ event: "" });
  } else if (id) {
    goTo(screen);
  }
  return Boolean(params.event || id);
}

/**
 * Moves the focus to the link of another row of a table.
 * @param {number} step
 */
function moveRow(step) {
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("tr[data-row] a, [data-row] > a")]);
  if (links.length === 0) {
    return false;
  }
  const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  links[Math.min(links.length - 1, Math.max(0, at + step))].focus();
  return true;
}

/** @param {import("./screen.js").Screen[]} screens */
function showKeys(screens) {
  const keys = [
    ...screens.filter((s) => s.key).map((s) => [`g ${s.key}`, s.title]), ["Ctrl K", "Go to a screen, role, agent, task, tool or approval"],
    [".", "Actions of the screen"], ["/", "Filter"], ["j, k", "Next and previous row"], ["← ↑ → ↓", "Move in the tree of the organization"],
    ["Enter", "Open"], ["Esc", "Close"], ["[, ]", "Previous and next denied call of a task"],
    ...screens.some((s) => s.id === "organization") ? [["m, a, t", "Send a message to the chosen agent, abort its turn, terminate it"]] : [],
    ["y, n, e, x", "Approve, deny, edit or choose the call that is shown"], ["?", "This help"],
  ];
  ask({
    title: "Keys", confirm: "Save",
    body: html`<label class="check"><input type="checkbox" name="letters" .checked=${!lettersAreOff()}>Single letters are keys</label><dl class="keys">${keys.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl>`,
    run: async ({ letters }) => localStorage.setItem(stored, letters ? "on" : "off"),
  });
}
