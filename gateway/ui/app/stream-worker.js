// A worker that all tabs share. It holds the only event stream and the only stream of approvals,
// because a browser opens six connections to a server at most. It keeps the last events for tabs
// that open later. It also has the texts that models write in the tasks that tabs show.

import { addPart, endsAnswer } from "./writing.js";

/** @typedef {{type: "begin", after: number, user: string} | {type: "end"} | {type: "renew"} | {type: "watch", task: string}} TabRequest */
/** @typedef {import("./writing.js").Part} Part */

const kept = 2000; // events for tabs that open later
const keptText = 16 << 20; // characters of them
const flushAfter = 40; // milliseconds in which events are collected before they are sent
const approvalsAfter = 5000; // milliseconds until the stream of approvals is opened again
const textsMost = 2; // tasks whose texts are followed at once, each with a connection

/** @type {Set<MessagePort>} */
const ports = new Set();
/** @type {any[]} */
let recent = [];
let recentText = 0; // characters of recent
/** @type {any[]} */
let pending = [];
let user = ""; // whose events recent has
/** @type {EventSource | null} */
let source = null;
/** @type {EventSource | null} */
let approvals = null; // says that the calls have changed that wait for the user
/** @type {Map<MessagePort, string>} */
const watched = new Map(); // the task that a tab shows; the tab that asked last is the last
/** @typedef {{source: EventSource | null, parts: Part[], drafts: import("./writing.js").Writing}} Texts parts are not sent yet, drafts are for tabs that open the task later */
/** @type {Map<string, Texts>} */
const texts = new Map(); // by task
let last = 0; // sequence number of the last event
let first = 0; // events after this one are in recent, if they were not dropped
let lostSince = 0; // 0 while the stream is live
let wait = 1000; // before the next attempt

/** @param {any} message */
function broadcast(message) {
  for (const port of ports) {
    port.postMessage(message);
  }
}

function close() {
  source?.close();
  approvals?.close();
  source = approvals = null;
  texts.forEach((one) => {
    one.source?.close();
    one.source = null;
  });
}

function open() {
  close();
  openApprovals();
  source = new EventSource(`../../api/v1/events?follow=true&after=${last}`);
  source.onopen = () => {
    wait = 1000;
    if (lostSince) {
      lostSince = 0;
      broadcast({ type: "live" });
    }
  };
  source.onmessage = (e) => receive(JSON.parse(e.data), e.data.length);
  source.onerror = () => retry();
  followTexts();
}

/** Opens the stream of approvals. It begins with the calls that wait, so tabs read them again. */
function openApprovals() {
  const stream = approvals = new EventSource("../../api/v1/approval-changes?follow=true");
  stream.onmessage = () => broadcast({ type: "approvals" });
  stream.onerror = () => { // a proxy may end it alone
    stream.close();
    setTimeout(() => approvals === stream && openApprovals(), approvalsAfter);
  };
}

/** Opens the stream again later. The browser's own attempts end at some errors, so they are not used. */
function retry() {
  close();
  if (!lostSince) {
    lostSince = Date.now();
  }
  broadcast({ type: "lost", since: lostSince });
  setTimeout(() => ports.size > 0 && source === null && open(), wait);
  wait = Math.min(2 * wait, 15_000);
}

/**
 * Notes the task that a tab shows; "" for none.
 * @param {MessagePort} port
 * @param {string} task
 */
function watch(port, task) {
  watched.delete(port);
  const one = texts.get(task);
  if (one) {
    tellTexts(task, one.parts.splice(0));
    port.postMessage({ type: "texts", task, parts: [...one.drafts].map(([agent, { text, note }]) => ({ agent, text, note })), begin: true });
  }
  if (task) {
    watched.set(port, task);
  }
  followTexts();
}

/** Opens and closes streams, so that those of the tasks are open that tabs asked for last. */
function followTexts() {
  const wanted = source ? [...new Set([...watched.values()].reverse())].slice(0, textsMost) : [];
  for (const [task, one] of texts) {
    if (source && !wanted.includes(task)) {
      one.source?.close();
      texts.delete(task);
    }
  }
  wanted.forEach(openText);
}

/**
 * Opens the stream of a task, unless it is open. The first part of an agent has all of its answer so
 * far, so it voids what an earlier stream had.
 * @param {string} task
 */
function openText(task) {
  const one = texts.get(task) ?? { source: null, parts: [], drafts: new Map() };
  texts.set(task, one);
  if (one.source && one.source.readyState !== EventSource.CLOSED) {
    return;
  }
  const stream = one.source = new EventSource(`../../api/v1/tasks/${encodeURIComponent(task)}/events?follow=true&deltas=true&after=${last}`);
  const heard = new Set(); // agents
  stream.onerror = () => stream.close(); // the task has ended; after a loss it is opened with the other streams
  stream.onmessage = (message) => {
    const e = JSON.parse(message.data);
    if (e.type !== "model_delta" && !endsAnswer(e)) {
      return;
    }
    const part = e.type === "model_delta" ? { agent: e.agent, text: e.text, note: e.note, again: e.again || !heard.has(e.agent) } : { agent: e.agent, end: e.seq };
    if (one.parts.length === 0) {
      setTimeout(() => tellTexts(task, one.parts.splice(0)), flushAfter);
    }
    heard.add(e.agent);
    addPart(one.drafts, part, e.seq ?? 0);
    joinPart(one.parts, part);
  };
}

/**
 * Adds a part to those that are not sent yet, to the last one if it goes on with that.
 * @param {Part[]} parts
 * @param {Part} part
 */
function joinPart(parts, part) {
  const before = parts.at(-1);
  if (before && before.agent === part.agent && !before.end && !part.end && !part.again) {
    before.note = part.note;
    before.text = (before.text ?? "") + (part.text ?? "");
  } else if (part.end || part.text || part.note || part.again) {
    parts.push(part);
  }
}

/**
 * Sends parts of texts to the tabs that show a task.
 * @param {string} task
 * @param {Part[]} parts
 */
function tellTexts(task, parts) {
  watched.forEach((of, port) => of === task && port.postMessage({ type: "texts", task, parts, begin: false }));
}

/** @param {any} event @param {number} size */
function receive(event, size) {
  if (event.type === "gap") { // the stream ends here and goes on after this event
    last = Math.max(last, event.seq);
    open();
    return;
  }
  if (!(event.seq > last)) {
    return;
  }
  last = event.seq;
  recent.push(event);
  recentText += size;
  if (recentText > keptText) {
    forget();
  } else if (recent.length > 2 * kept) {
    recent = recent.slice(-kept);
    recentText /= 2;
    first = recent[0].seq - 1;
  }
  pending.push(event);
  if (pending.length === 1) {
    setTimeout(flush, flushAfter);
  }
}

/** Drops the events for tabs that open later. */
function forget() {
  recent = [];
  recentText = 0;
  first = last;
}

function flush() {
  const events = pending;
  pending = [];
  broadcast({ type: "events", events });
}

/**
 * Adds a tab that knows the events up to a number. Its user may be another one than that of the
 * tabs before, which may not see the same.
 * @param {MessagePort} port
 * @param {number} after
 * @param {string} of the user
 */
function begin(port, after, of) {
  if (user && of !== user) { // the cookie of the browser is that of the new user
    broadcast({ type: "user" });
    ports.clear();
  }
  ports.add(port);
  if (source === null && !lostSince || of !== user) {
    watched.clear(); // the tabs of the user before
    user = of;
    last = after;
    pending = [];
    forget();
    open();
  } else if (after < first) {
    port.postMessage({ type: "gap" });
  } else {
    port.postMessage({ type: "events", events: recent.filter((e) => e.seq > after) });
  }
  if (lostSince) {
    port.postMessage({ type: "lost", since: lostSince });
  }
}

/** @param {MessagePort} port */
function end(port) {
  ports.delete(port);
  watched.delete(port);
  followTexts();
  if (ports.size === 0) {
    close();
    lostSince = 0;
  }
}

/** @param {MessagePort} port */
function listen(port) {
  port.onmessage = (e) => {
    const request = /** @type {TabRequest} */ (e.data);
    if (request.type === "begin") {
      begin(port, request.after, request.user);
    } else if (request.type === "renew") {
      open(); // another user has signed in
    } else if (request.type === "watch") {
      watch(port, request.task);
    } else {
      end(port);
    }
  };
}

/** @type {any} */ (self).onconnect = (/** @type {MessageEvent} */ e) => listen(e.ports[0]);
