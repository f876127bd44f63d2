// The events of the organization, from the worker that all tabs share.

/** @typedef {{seq: number, at: string, type: string, task?: string, agent?: string, role?: string, [field: string]: any}} OrgEvent */
/**
 * @typedef {object} StreamListener
 * @property {(events: OrgEvent[]) => void} onEvents
 * @property {() => void} onApprovals the calls have changed that wait for the user
 * @property {(since: number) => void} onState 0 while the stream is live, else when it was lost
 * @property {(task: string, parts: import("./writing.js").Part[], begin: boolean) => void} onTexts models write in the task that the tab shows; begin voids the parts before
 * @property {() => void} onGap events were missed: what is shown must be loaded again
 * @property {() => void} onUser another user has signed in, in another tab
 */

/** Trusted Types allow the address of the worker and no other. */
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("rolecall-worker", {
  createScriptURL: (/** @type {string} */ url) => {
    if (url !== "ui/app/stream-worker.js") {
      throw new TypeError("not the worker of this page");
    }
    return url;
  },
});

/** @type {MessagePort | undefined} */
let port;

/**
 * Follows the events after a sequence number, as a user sees them.
 * @param {number} after
 * @param {string} user
 * @param {StreamListener} listener
 */
export function follow(after, user, listener) {
  stop();
  const url = "ui/app/stream-worker.js";
  const worker = new SharedWorker(policy ? policy.createScriptURL(url) : url, { name: "rolecall-stream", type: "module" });
  port = worker.port;
  port.onmessage = ({ data }) => {
    switch (data.type) {
      case "events": return data.events.length > 0 && listener.onEvents(data.events);
      case "approvals": return listener.onApprovals();
      case "live": return listener.onState(0);
      case "lost": return listener.onState(data.since);
      case "texts": return listener.onTexts(data.task, data.parts, data.begin);
      case "gap": return listener.onGap();
      case "user": return listener.onUser();
    }
  };
  port.postMessage({ type: "begin", after, user });
}

/** Opens the stream again, after another user has signed in. */
export function renew() {
  port?.postMessage({ type: "renew" });
}

let watchedTask = "";

/**
 * Asks for the texts that models write in a task; "" for none.
 * @param {string} task
 */
export function watchTask(task) {
  if (task !== watchedTask) {
    watchedTask = task;
    port?.postMessage({ type: "watch", task });
  }
}

/** Ends the share of this tab. */
export function stop() {
  watchedTask = "";
  port?.postMessage({ type: "end" });
  port?.close();
  port = undefined;
}
