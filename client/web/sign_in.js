// SPDX-License-Identifier: Apache-2.0
// The form of somebody who is not signed in.

import { check } from "/web/api.js";
import { element } from "/web/dom.js";
import { isToken, signIn, signOut } from "/web/session.js";

/** The form; `why` says why it is shown, `done` is called once the controller has taken a token. */
export function signInView(why, done) {
  const field = element("input", {
    id: "token", name: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "refused",
  });
  const refused = element("p", { id: "refused", class: "error", role: "alert" }, why);
  const submit = async (event) => {
    event.preventDefault();
    if (!isToken(field.value.trim())) {
      refused.textContent = "A token is one word of letters, digits and signs.";
      return;
    }
    signIn(field.value.trim());
    try {
      await check();
      done();
    } catch (failure) {
      signOut();
      field.value = "";
      refused.textContent = failure.status === 0 ? failure.message : `The controller refuses this token: ${failure.message}`;
    }
  };
  return element(
    "section",
    { class: "card sign-in" },
    element("h1", {}, "Sign in"),
    element("p", {}, "In a terminal of your machine, ", element("code", {}, "gpuctl open"), " opens this page signed in."),
    element("p", {}, "Or paste your token. ", element("code", {}, "gpuctl open --with-token"), " prints a link that holds it."),
    element(
      "form",
      { onsubmit: submit },
      element("label", { for: "token" }, "Token"),
      element("div", { class: "row" }, field, element("button", { type: "submit" }, "Sign in")),
      refused,
    ),
  );
}
