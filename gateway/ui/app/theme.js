// The colours: those of the system, or light, dark or high contrast.

import { html } from "../vendor/lit-html/lit-html.js";

const names = ["system", "light", "dark", "contrast"];
const stored = "rolecall-theme";

/** Sets the theme that the user has chosen before. */
export function setTheme() {
  const theme = chosenTheme();
  if (theme === "system") {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = theme;
  }
}

function chosenTheme() {
  const theme = localStorage.getItem(stored) ?? "";
  return names.includes(theme) ? theme : "system";
}

/** @param {() => void} redraw */
export function themePicker(redraw) {
  return html`<label class="check"><span>Colours</span><select @change=${(/** @type {any} */ e) => {
    localStorage.setItem(stored, e.target.value);
    setTheme();
    redraw();
  }}>${names.map((name) => html`<option value=${name} ?selected=${name === chosenTheme()}>${name}</option>`)}</select></label>`;
}
