// The page: navigation, the current screen and its states, and the event stream.

import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { get, send, setCSRF } from "./api.js";
import { access } from "./access.js";
import { approvals } from "./approvals.js";
import { artifacts } from "./artifacts.js";
import { clock, duration } from "./format.js";
import { isTyping, navigationKeys } from "./keys.js";
import { organization } from "./organization.js";
import { openPlaces } from "./palette.js";
import { announce, empty, failure, mark, quiet, skeleton } from "./parts.js";
import { beginNames } from "./people.js";
import { currentPlace, placeLink } from "./place.js";
import { record } from "./record.js";
import { roles } from "./roles.js";
import { returnFromIssuer, signIn } from "./signin.js";
import { start } from "./start.js";
import { follow, renew, stop, watchTask } from "./stream.js";
import { task } from "./task.js";
import { setTheme, themePicker } from "./theme.js";
import { tools } from "./tools.js";
import { topScreen } from "./top.js";

/** @typedef {import("./screen.js").Screen} Screen */
/** @typedef {import("./stream.js").OrgEvent} OrgEvent */

const screens = [organization, task, approvals, roles, access, tools, record, artifacts, topScreen, start];

const state = {
  session: /** @type {any} */ (undefined), // undefined: not known yet; null: nobody is signed in
  screen: /** @type {Screen | undefined} */ (undefined),
  place: currentPlace(), // of the data: the address changes before the page is told
  address: "", // of the place
  key: "", // of the loaded data
  data: /** @type {any} */ (undefined),
  error: /** @type {any} */ (undefined),
  loadedAt: 0,
  loading: /** @type {AbortController | undefined} */ (undefined), // while data is loading
  missed: /** @type {OrgEvent[]} */ ([]), // events that came meanwhile
  missedSome: false, // too many came: the data must be loaded again
  lostSince: 0,
  waiting: 0, // calls that wait for the user's approval
  signOutError: "", // why the user is still signed in
};

/** @type {(() => void)[]} */
let afterDraw = [];
let drawing = false;
let drawingTook = 0; // milliseconds of the last drawing
let eventsAt = 0; // when the first event came that is not drawn yet, by the page's clock; 0 for none

/** @type {import("./screen.js").Page} */
const page = {
  get now() {
    return Date.now();
  },
  get session() {
    return state.session;
  },
  redraw,
  reload: () => load(),
  afterDraw: (f) => {
    afterDraw.push(f);
    redraw();
  },
};

/** Draws with the next frame. After a slow drawing it pauses, so that users can act in between. */
function redraw() {
  if (!drawing) {
    drawing = true;
    setTimeout(() => requestAnimationFrame(draw), Math.min(1000, drawingTook > 16 ? 3 * drawingTook : 0));
  }
}

function draw() {
  const begun = performance.now();
  drawing = false;
  const root = /** @type {HTMLElement} */ (document.getElementById("page"));
  try {
    render(state.session === undefined ? nothing : state.session === null ? signIn(() => enter(true), redraw) : shell(), root);
  } catch (/** @type {any} */ error) { // a fault of the page: data that it cannot show
    console.error(error);
    render(failure(error, () => location.reload()), root);
  }
  watchTask(state.session && state.data !== undefined && state.screen?.watch?.(state.data) || "");
  const done = afterDraw;
  afterDraw = [];
  for (const f of done) {
    f();
  }
  measureEvents();
  drawingTook = performance.now() - begun;
}

/** Notes how long the last events took to be drawn, for tests and for the tools of the browser. */
function measureEvents() {
  if (eventsAt) {
    performance.clearMeasures("rolecall-events");
    performance.measure("rolecall-events", { start: eventsAt });
    eventsAt = 0;
  }
}

/** @returns {Screen[]} those that the user may see */
function allowedScreens() {
  return screens.filter((s) => s.scope === "caller" || state.session?.operator);
}

/**
 * Learns who is signed in, and begins.
 * @param {boolean} [signedIn] the user has just signed in
 */
async function enter(signedIn = false) {
  try {
    state.session = await get("ui/session");
    setCSRF(state.session.csrf);
    if (signedIn || !location.hash) {
      land();
    }
    await begin();
  } catch (/** @type {any} */ error) {
    state.session = null;
    stop();
  }
  redraw();
}

/** Goes to the first screen of the user if the address names none that the user may see, such as one of the user before. */
function land() {
  const allowed = allowedScreens(), { screen } = currentPlace();
  if (!allowed.some((s) => s.id === screen)) {
    history.replaceState(null, "", placeLink(allowed[0].id));
  }
}

/** The user whose data this tab has; "" for none. */
let shownTo = "";

/** @param {any} session */
function nameOf({ user, roleId, operator }) {
  return JSON.stringify([user, roleId, operator]);
}

/** Opens the event stream at the last event, and the screen of the address. */
async function begin() {
  const who = nameOf(state.session);
  if (shownTo && shownTo !== who) { // nothing of the user before may stay
    state.session = undefined; // nothing is drawn until the page is there again
    location.reload();
    return;
  }
  shownTo = who;
  beginNames(state.session, redraw);
  const { last } = await get("api/v1/events", { limit: 1 });
  follow(last, who, { onEvents, onApprovals, onState, onTexts, onGap: () => load(), onUser: () => location.reload() });
  renew();
  countApprovals();
  arrive(true);
}

/** Counts the calls that wait for the user, for the navigation and the title. */
async function countApprovals() {
  const { items } = await get("api/v1/approvals", { limit: 1000 }).catch(() => ({ items: [] }));
  state.waiting = items.length;
  setTitle();
  redraw();
}

/** @type {number | undefined} */
let countTimer;

/** Counts the calls that wait again, at most once a second: an agent may make many at once. */
function countSoon() {
  countTimer ??= setTimeout(() => {
    countTimer = undefined;
    countApprovals();
  }, 1000);
}

function setTitle() {
  document.title = `${state.waiting ? `(${state.waiting}) ` : ""}${state.screen?.title ?? "Not found"} · rolecall`;
}

/** An approver who is no operator sees no events of the calls that wait. */
function onApprovals() {
  countSoon();
  if (state.screen === approvals) {
    reloadSoon();
  }
}

/** @param {OrgEvent[]} events */
function onEvents(events) {
  const { screen, place, data } = state;
  if (state.loading) {
    keepMissed(events); // the data that is loading may be older
  }
  if (!screen?.fold || data === undefined) {
    return;
  }
  let changed = false;
  for (const e of events) {
    const result = screen.fold(data, e, place);
    if (result === "reload") {
      reloadSoon();
    }
    changed ||= result !== false;
  }
  if (changed) {
    eventsAt ||= performance.now();
    redraw();
  }
}

/** @param {string} task @param {import("./writing.js").Part[]} parts @param {boolean} begin */
function onTexts(task, parts, begin) {
  const { screen, data } = state;
  if (data !== undefined && screen?.watch?.(data) === task) {
    screen.write?.(data, parts, begin);
    redraw();
  }
}

const missedMost = 10_000;

/** @param {OrgEvent[]} events */
function keepMissed(events) {
  state.missed.push(...events);
  if (state.missed.length > missedMost) {
    state.missed = [];
    state.missedSome = true;
  }
}

/** @param {number} since */
async function onState(since) {
  const wasLost = state.lostSince;
  state.lostSince = since;
  redraw();
  if (since && !wasLost) {
    checkSession();
  }
}

/** Asks whether the session has ended, which also ends the stream. Another user may have signed in. */
async function checkSession() {
  try {
    const session = await get("ui/session");
    if (nameOf(session) !== shownTo) {
      location.reload();
      return;
    }
    setCSRF(session.csrf);
  } catch (/** @type {any} */ error) {
    if (error.status === 401) {
      state.session = null;
      redraw();
    }
  }
}

/** @type {number | undefined} */
let reloadTimer;

/** Loads the data again, at most once a second. What is loading is not interrupted. */
function reloadSoon() {
  reloadTimer ??= setTimeout(() => {
    reloadTimer = undefined;
    state.loading || refreshing ? reloadSoon() : reload();
  }, 1000);
}

let refreshing = false; // an answer that comes late must not replace a newer one

/** Loads again what events do not tell. */
async function reload() {
  const { screen, place, data, key } = state;
  if (!screen?.refresh || data === undefined || state.error) {
    load();
    return;
  }
  refreshing = true;
  try {
    await screen.refresh(data, place);
    redraw();
  } catch {
    if (state.key === key) {
      load(); // which shows the error
    }
  } finally {
    refreshing = false;
  }
}

/**
 * Follows the address to its screen.
 * @param {boolean} [again] loads the data even if it is that of the address
 */
function arrive(again = false) {
  const place = currentPlace();
  const allowed = allowedScreens();
  const screen = allowed.find((s) => s.id === place.screen);
  const moved = screen !== state.screen;
  const key = screen ? `${screen.id} ${screen.loadKey(place)}` : "";
  Object.assign(state, { screen, place, address: location.hash });
  setTitle();
  if (moved || key !== state.key || again) {
    if (moved || key !== state.key) {
      state.data = state.error = undefined;
      announce("");
    }
    state.key = key;
    load();
  }
  if (moved) {
    page.afterDraw(() => {
      document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
      document.querySelector("h1")?.focus();
    });
  }
  redraw();
}

/** Loads the data of the screen. What is shown stays until the new data is there. */
async function load() {
  const { screen, place } = state;
  if (!screen) {
    return;
  }
  state.loading?.abort();
  const loading = state.loading = new AbortController();
  state.missed = [];
  state.missedSome = false;
  try {
    const data = await screen.load(place, loading.signal, page);
    if (loading.signal.aborted) {
      return;
    }
    watchTask(""); // the new data has no parts of texts yet
    Object.assign(state, { data, error: undefined, loadedAt: Date.now(), loading: undefined });
    onEvents(state.missed.splice(0));
    if (state.missedSome) {
      setTimeout(() => state.data === data && load(), 1000);
    }
  } catch (/** @type {any} */ error) {
    if (loading.signal.aborted) {
      return;
    }
    Object.assign(state, { error, loading: undefined });
    if (error.status === 401) {
      state.session = null;
    }
  }
  redraw();
}

function shell() {
  const { screen, place } = state;
  return html`<a class="skip" href="#main" @click=${skip}>To the content</a>
    <div class="shell">
      ${state.lostSince ? html`<div class="lost" role="status">◷ Not live since ${clock(state.lostSince)} UTC. Trying again.</div>` : nothing}
      ${navigation()}
      <main id="main" tabindex="-1" data-place=${state.data === undefined && !state.error && screen ? nothing : state.address}>
        <div class="title"><h1 tabindex="-1">${heading()}</h1>
          <div class="tools">${screen?.tools && state.data !== undefined ? screen.tools(state.data, place, page) : nothing}</div></div>
        ${content()}
      </main></div>
    <div id="announcements" class="hidden" aria-live="polite"></div>
    <dialog id="dialog" aria-labelledby="dialog-title"></dialog>`;
}

function heading() {
  const { screen, place, data } = state;
  return (data !== undefined && screen?.heading?.(data, place)) || (screen?.title ?? "Not found");
}

/** @param {Event} e */
function skip(e) {
  e.preventDefault();
  document.getElementById("main")?.focus();
}

/** The data of the screen, or the state that it is in. */
function content() {
  const { screen, place, data, error } = state;
  if (!screen) {
    return empty("There is no such screen, or you may not see it.");
  }
  if (data === undefined) {
    return error ? failure(error, () => load()) : skeleton();
  }
  const shown = screen.isEmpty?.(data, place) && screen.empty ? emptyScreen(screen.empty(place, page)) : screen.render(data, place, page);
  return error
    ? html`${failure(error, () => load())}<p class="quiet">This was true ${duration(Date.now() - state.loadedAt)} ago.</p><div class="stale">${shown}</div>`
    : shown;
}

/** @param {{text: string, command?: string}} what */
function emptyScreen({ text, command }) {
  return empty(text, command);
}

function navigation() {
  const { session } = state;
  return html`<aside class="side" aria-label="rolecall">
    <div class="brand"><img src="ui/app/icon.svg" alt="">rolecall</div>
    <button type="button" class="find" @click=${() => openPlaces(allowedScreens().filter((s) => !s.hidden), session)}>Go to … <kbd aria-hidden="true">Ctrl K</kbd></button>
    <nav aria-label="Screens"><ul>${allowedScreens().filter((s) => !s.hidden).map((s) => html`<li>
      <a href=${placeLink(s.id)} aria-current=${s === state.screen ? "page" : nothing}><span>${s.title}</span>${s === approvals && state.waiting ? html`<span class="badge">${state.waiting}<span class="hidden"> wait</span></span>` : nothing}${s.key ? html`<kbd aria-hidden="true">g ${s.key}</kbd>` : nothing}</a></li>`)}</ul></nav>
    <div class="who">${themePicker(redraw)}
      <span>${session.operator ? "Operator" : html`${session.user} ${quiet("in role " + session.role)}`}</span>
      ${session.csrf ? html`<button type="button" @click=${signOut}>Sign out</button>` : nothing}
      ${state.signOutError ? html`<p role="alert">${mark("bad", `You are still signed in: ${state.signOutError}`)}</p>` : nothing}</div></aside>`;
}

async function signOut() {
  try {
    await send("DELETE", "ui/session");
  } catch (/** @type {any} */ error) {
    if (error.status !== 401 && error.status !== 404) { // the session stands
      state.signOutError = error.message;
      redraw();
      return;
    }
  }
  state.signOutError = "";
  history.replaceState(null, "", location.pathname); // the next user may not see the same
  state.session = null;
  stop();
  redraw();
}

addEventListener("hashchange", () => state.session && arrive());
addEventListener("pagehide", stop);
addEventListener("pageshow", (e) => e.persisted && enter());
addEventListener("keydown", (e) => {
  if (state.session && (e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === "k") {
    e.preventDefault();
    openPlaces(allowedScreens().filter((s) => !s.hidden), state.session);
    return;
  }
  if (!state.session || e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey) {
    return;
  }
  const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("dialog"));
  if (dialog?.open || isTyping(e.target)) {
    return;
  }
  const used = navigationKeys(e, allowedScreens())
    || state.data !== undefined && state.screen?.keydown?.(e, state.data, state.place, page);
  if (used) {
    e.preventDefault();
  }
});
setInterval(redraw, 10_000); // relative times
setTheme();
enter(returnFromIssuer());
