// Screen: give a task.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { list, RequestError, send } from "./api.js";
import { command } from "./format.js";
import { commandLine, mark } from "./parts.js";
import { field } from "./dialog.js";
import { goTo } from "./place.js";

/** What the user has typed. It stays when another screen is shown. */
const form = { text: "", role: "", timeout: "", error: "", busy: false };

/** @type {import("./screen.js").Screen} */
export const start = {
  id: "start", title: "Give a task", key: "n", scope: "caller",
  loadKey: () => "",
  async load(_, signal, page) {
    const roles = page.session.operator ? (await list("api/v1/roles", {}, 1000, signal)).items : [];
    page.afterDraw(focusText);
    return { roles };
  },
  render: (data, place, page) => html`<form class="start" @submit=${(/** @type {Event} */ e) => submit(e, page)} @input=${(/** @type {any} */ e) => {
    Object.assign(form, Object.fromEntries(new FormData(e.currentTarget)));
    page.redraw();
  }}>
    <div class="cards"><div class="card">
      ${field("What to do", "text", { value: form.text, rows: 6, required: true })}
      ${data.roles.length === 0 ? nothing : html`<label class="field"><span>Role of the first agent</span><select name="role">
        <option value="">root, which creates roles and spawns agents</option>
        ${data.roles.map((/** @type {any} */ r) => html`<option value=${r.id} ?selected=${r.id === (form.role || place.params.role)}>${r.name}${r.description ? ": " + r.description : ""}</option>`)}</select></label>`}
      ${field("Time limit", "timeout", { value: form.timeout, hint: "such as 10m; empty for the limit of the organization" })}
      ${form.error ? html`<p role="alert">${mark("bad", form.error)}</p>` : nothing}
      ${commandLine(command("run", ...(form.role ? ["--role", form.role] : []), ...(form.timeout ? ["--timeout", form.timeout] : []), form.text || "TASK"))}
      <div class="buttons"><button class="primary" ?disabled=${form.busy}>Start the task</button></div>
    </div></div></form>`,
};

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
  form.busy = true;
  form.error = "";
  page.redraw();
  try {
    const { text, role, timeout } = form;
    const task = await send("POST", "api/v1/tasks", { text, role: role || undefined, timeout: timeout || undefined }, { "Idempotency-Key": requestKey() });
    form.text = "";
    goTo("task", task.id);
  } catch (/** @type {any} */ error) {
    form.error = error instanceof RequestError ? error.message : String(error);
  }
  form.busy = false;
  page.redraw();
}


/** A random text, which makes a request that is sent twice start one task. Works without TLS, too. */
function requestKey() {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((n) => n.toString(36)).join("");
}
