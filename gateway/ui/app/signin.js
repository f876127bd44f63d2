// The form that signs a user in with a token, or at an issuer.

import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { get, send } from "./api.js";
import { mark } from "./parts.js";
import { currentPlace } from "./place.js";

let error = "";

const kept = "rolecall-place"; // where the user was before an issuer was asked

/** What the codes of failed attempts mean. A link may name a code, but no text. */
const failures = /** @type {Record<string, string>} */ ({
  unauthenticated: "The issuer has not signed you in, or the attempt took too long. Begin again.",
  insufficient_permissions: "The issuer knows you, but you have no role here. Ask an operator to give you one.",
  rate_limited: "Too many attempts to sign in have failed. Wait a minute and begin again.",
  tool_unavailable: "The issuer does not answer. Try again later, or sign in with a token.",
  route_not_found: "There is no such issuer here. Choose one of those below.",
});

/**
 * Learns from the address whether an attempt at an issuer has failed, and returns to where the user was.
 * It reports whether an attempt has succeeded.
 */
export function returnFromIssuer() {
  const { screen, params } = currentPlace();
  const failed = screen === "sign-in-failed";
  const back = sessionStorage.getItem(kept) ?? "";
  const succeeded = !failed && location.hash === "" && back !== "";
  if (failed) {
    error = failures[params.code] ?? `The attempt to sign in has failed. Begin again.`;
  }
  if (failed || succeeded) {
    history.replaceState(null, "", location.pathname + back);
  }
  if (!failed) {
    sessionStorage.removeItem(kept);
  }
  return succeeded;
}

/** @type {string[] | undefined} */
let issuers; // with which users sign in; undefined: not asked yet

function keepPlace() {
  sessionStorage.setItem(kept, location.hash);
}

/** @param {() => void} redraw */
async function learnIssuers(redraw) {
  issuers = [];
  issuers = (await get("ui/issuers").catch(() => ({ issuers: [] }))).issuers;
  redraw();
}

/**
 * @param {() => void} entered called after the user has signed in
 * @param {() => void} redraw
 */
export function signIn(entered, redraw) {
  if (issuers === undefined) {
    learnIssuers(redraw);
  }
  const submit = async (/** @type {SubmitEvent} */ e) => {
    e.preventDefault();
    const form = /** @type {HTMLFormElement} */ (e.target);
    try {
      error = "";
      await send("POST", "ui/session", { token: String(new FormData(form).get("token")).trim() });
      form.reset();
      entered();
    } catch (/** @type {any} */ cause) {
      error = cause.message;
      const place = document.getElementById("signin-error");
      place && render(mark("bad", error), place);
    }
  };
  const back = encodeURIComponent(location.pathname);
  return html`<main class="signin">
    <div class="brand"><img src="ui/app/icon.svg" alt="">rolecall</div>
    <div class="title"><h1>Sign in</h1></div>
    <p class="quiet">See who is in the organization, what agents do, and what was denied.</p>
    <form @submit=${submit}>
      <label class="field"><span>Token</span><input name="token" type="password" autocomplete="current-password" required autofocus>
        <small>The token that an operator gave you, or the start-up token that <code class="fixed">rolecall serve</code> printed.</small></label>
      <p id="signin-error" role="alert">${error ? mark("bad", error) : nothing}</p>
      <div class="buttons"><button class="primary">Sign in</button></div>
    </form>
    ${issuers?.length ? html`<p class="or quiet">or</p>
      <div class="issuers">${issuers.map((name) => html`<a class="button" @click=${keepPlace} href="ui/login?issuer=${encodeURIComponent(name)}&to=${back}">Sign in with ${name}</a>`)}</div>` : nothing}</main>`;
}
