// SPDX-License-Identifier: Apache-2.0
// The form of somebody who is not signed in.

import { signIn } from "/web/api.js";
import { element } from "/web/dom.js";
import { isToken } from "/web/session.js";

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
    try {
      await signIn({ token: field.value.trim() });
      done();
    } catch (failure) {
      field.value = "";
      refused.textContent = failure.status === 0 ? failure.message : `The controller refuses this token: ${failure.message}`;
    }
  };
  return element(
    "section",
    { class: "card sign-in" },
    element("h1", {}, "Sign in"),
    element("p", {}, "In a terminal of your machine, ", element("code", {}, "gpuctl open"), " opens this page signed in."),
    element("p", {}, "Or paste your token. ", element("code", {}, "gpuctl open --link"), " prints a link that signs in once."),
    element(
      "form",
      { onsubmit: submit },
      element("label", { for: "token" }, "Token"),
      element("div", { class: "row" }, field, element("button", { type: "submit" }, "Sign in")),
      refused,
    ),
  );
}
