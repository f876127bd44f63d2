// The dialog of the page. Each action that changes something asks in it, shows its command
// line, and reports its error.

import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { commandLine, mark } from "./parts.js";

const previewAfter = 200; // milliseconds after the last change of a field

/**
 * @typedef {object} Action
 * @property {string} title what will happen, such as Cancel the task
 * @property {any} [body] a template with fields; each has a name
 * @property {string} confirm the text of the button
 * @property {boolean} [danger] the button warns
 * @property {(fields: Record<string, string>) => boolean} [ready] reports whether the fields suffice; without it they do
 * @property {string} [typed] a text that the user must type to confirm
 * @property {(fields: Record<string, string>) => Promise<any>} [preview] a template of what will happen
 * @property {(fields: Record<string, string>) => string} [command] the command line that does the same
 * @property {(fields: Record<string, string>) => Promise<any>} run
 */

/**
 * Asks for an action and runs it. It resolves when the dialog is closed, with the result of the
 * action, or undefined if it did not run. It asks nothing while the dialog is open.
 * @param {Action} action
 * @returns {Promise<any>}
 */
export function ask(action) {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
  if (dialog.open) { // the user is about to confirm something else
    return Promise.resolve(undefined);
  }
  return new Promise((resolve) => {
    let error = "", busy = false;
    /** @type {any} */
    let effect = nothing;
    /** @type {any} */
    let result;
    const fields = () => {
      const form = dialog.querySelector("form");
      return form ? /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form))) : {};
    };
    const isReady = () => !(action.typed && fields().typed !== action.typed) && (action.ready?.(fields()) ?? true);
    const draw = () => render(template(), dialog);
    const preview = afterTyping(async () => {
      const asked = JSON.stringify(fields());
      const shown = await action.preview?.(fields()).catch((/** @type {Error} */ cause) => html`<p role="alert">${mark("bad", cause.message)}</p>`);
      if (dialog.open && asked === JSON.stringify(fields())) {
        effect = shown ?? nothing;
        draw();
      }
    });
    const typed = () => {
      draw();
      action.preview && preview();
    };
    const submit = async (/** @type {Event} */ e) => {
      e.preventDefault();
      if (busy || !isReady()) {
        return;
      }
      busy = true;
      error = "";
      draw();
      try {
        result = (await action.run(fields())) ?? true;
        dialog.close();
      } catch (cause) {
        error = cause instanceof Error ? cause.message : String(cause);
      }
      busy = false;
      draw();
    };
    const template = () => html`<form method="dialog" @submit=${submit} @input=${typed}>
      <h2 id="dialog-title">${action.title}</h2>
      ${action.body ?? nothing}
      ${effect}
      ${action.typed ? html`<label class="field"><span>Type <code>${action.typed}</code> to confirm</span><input name="typed" autocomplete="off"></label>` : nothing}
      ${action.command ? commandLine(action.command(fields())) : nothing}
      ${error ? html`<p role="alert">${mark("bad", error)}</p>` : nothing}
      <div class="buttons">
        <button type="button" @click=${() => dialog.close()}>Close</button>
        <button type="submit" class=${action.danger ? "danger" : "primary"} ?disabled=${busy || !isReady()}>${action.confirm}</button>
      </div></form>`;
    dialog.addEventListener("close", () => {
      render(nothing, dialog);
      resolve(result);
    }, { once: true });
    draw();
    draw(); // now the fields have values for the command line
    dialog.showModal();
    focusFirst(dialog);
  });
}

/**
 * Returns a function that runs another one once the user has stopped typing.
 * @param {() => void} run
 */
function afterTyping(run) {
  /** @type {number | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, previewAfter);
  };
}

/**
 * Moves the focus to the first field that is visible, or to the button that confirms.
 * @param {HTMLDialogElement} dialog
 */
function focusFirst(dialog) {
  const fields = /** @type {HTMLElement[]} */ ([...dialog.querySelectorAll("input, textarea, select")]);
  const confirm = /** @type {HTMLElement | null} */ (dialog.querySelector("button[type=submit]"));
  (fields.find((f) => f.checkVisibility()) ?? confirm)?.focus();
}

/**
 * A field of a dialog or form.
 * @param {string} label
 * @param {string} name
 * @param {{value?: string, type?: string, required?: boolean, rows?: number, hint?: string, error?: string}} [options]
 */
export function field(label, name, options = {}) {
  const { value = "", type = "text", required = false, rows, hint, error } = options;
  return html`<label class="field"><span>${label}</span>${rows
    ? html`<textarea name=${name} rows=${rows} ?required=${required}>${value}</textarea>`
    : html`<input name=${name} type=${type} value=${value} ?required=${required} autocomplete="off" aria-invalid=${error ? "true" : nothing}>`}${error ? html`<small role="alert">${mark("bad", error)}</small>` : nothing}${hint ? html`<small>${hint}</small>` : nothing}</label>`;
}
