// Screen: give a task.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { list, RequestError, send } from "./api.js";
import { command } from "./format.js";
import { commandLine, mark } from "./parts.js";
import { field } from "./dialog.js";
import { goTo, setParams } from "./place.js";

/** What the user has typed. It stays when another screen is shown. */
const form = { text: "", role: "", timeout: "", timeoutError: "", error: "", busy: false };

/** A positive duration as the gateway reads it, such as 1h30m. */
const durationText = /^\+?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/;

/** @type {import("./screen.js").Screen} */
export const start = {
  id: "start", title: "Give a task", key: "n", scope: "caller",
  loadKey: () => "",
  async load(place, signal, page) {
    const roles = page.session.operator ? (await list("api/v1/roles", {}, 1000, signal)).items : [];
    page.afterDraw(focusText);
    form.role = place.params.role ?? form.role;
    return { roles };
  },
  render: (data, _, page) => html`<form class="start" @submit=${(/** @type {Event} */ e) => submit(e, page)} @input=${(/** @type {any} */ e) => {
    Object.assign(form, Object.fromEntries(new FormData(e.currentTarget)), { timeoutError: "" });
    if (e.target.name === "role") {
      setParams({ role: form.role }); // the address names the role that is chosen
    }
    page.redraw();
  }}>
    <div class="cards"><div class="card">
      ${field("What to do", "text", { value: form.text, rows: 6, required: true })}
      ${data.roles.length === 0 ? nothing : html`<label class="field"><span>Role of the first agent</span><select name="role">
        <option value="">root, which creates roles and spawns agents</option>
        ${data.roles.map((/** @type {any} */ r) => html`<option value=${r.id} ?selected=${r.id === form.role || r.name === form.role}>${r.name}${r.description ? ": " + r.description : ""}</option>`)}</select></label>`}
      ${field("Time limit", "timeout", { value: form.timeout, hint: "such as 10m; empty for the limit of the organization", error: form.timeoutError })}
      ${form.error ? html`<p role="alert">${mark("bad", form.error)}</p>` : nothing}
      ${commandLine(command("run", ...(form.role ? ["--role", roleName(data.roles)] : []), ...(form.timeout ? ["--timeout", form.timeout] : []), form.text || "TASK"))}
      <div class="buttons"><button class="primary" ?disabled=${form.busy}>Start the task</button></div>
    </div></div></form>`,
};

/** @param {any[]} roles */
function roleName(roles) {
  return roles.find((r) => r.id === form.role)?.name ?? form.role;
}

/** Moves the focus from the heading to the text of the task. */
function focusText() {
  if (!document.activeElement?.matches("input, select, textarea")) {
    /** @type {HTMLElement | null} */ (document.querySelector("form.start textarea"))?.focus();
  }
}

/** @param {Event} e @param {import("./screen.js").Page} page */
async function submit(e, page) {
  e.preventDefault();
  if (form.busy) {
    return;
  }
  if (form.timeout && !(durationText.test(form.timeout) && /[1-9]/.test(form.timeout))) {
    form.timeoutError = "Write a duration such as 90s, 10m or 1h30m.";
    page.redraw();
    /** @type {HTMLElement | null} */ (document.querySelector("form.start [name=timeout]"))?.focus();
    return;
  }
  form.busy = true;
  form.error = "";
  page.redraw();
  try {
    const { text, role, timeout } = form, body = { text, role: role || undefined, timeout: timeout || undefined };
    const task = await send("POST", "api/v1/tasks", body, { "Idempotency-Key": keyFor(JSON.stringify(body)) });
    form.text = "";
    sent = { body: "", key: "" };
    goTo("task", task.id);
  } catch (/** @type {any} */ error) {
    form.error = error instanceof RequestError ? error.message : String(error);
  }
  form.busy = false;
  page.redraw();
}


let sent = { body: "", key: "" }; // the last request, which may have started a task although no answer came

/**
 * A random text, which makes a request that is sent twice start one task. Works without TLS, too.
 * @param {string} body
 */
function keyFor(body) {
  if (sent.body !== body) {
    sent = { body, key: randomKey() };
  }
  return sent.key;
}

function randomKey() {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((n) => n.toString(36)).join("");
}
