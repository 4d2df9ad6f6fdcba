// SPDX-License-Identifier: Apache-2.0
// Who is signed in: the token, kept in this browser for this address alone. It goes nowhere but into the header of requests to the
// controller: there is no cookie, so no other page can make the browser send it.

const KEY = "gpuctl.token";

/** A token is printable ASCII without spaces: nothing else fits into a header. */
export function isToken(text) {
  return /^[\x21-\x7e]+$/.test(text ?? "");
}

export function token() {
  return localStorage.getItem(KEY);
}

export function signIn(given) {
  localStorage.setItem(KEY, given);
}

export function signOut() {
  localStorage.removeItem(KEY);
}

/** `gpuctl open` brings the token in the fragment, "#token=T&to=/experiments/1": takes it out of the address at once. */
export function takeFromAddress() {
  if (!location.hash.startsWith("#token=")) {
    return;
  }
  const given = new URLSearchParams(location.hash.slice(1));
  const to = given.get("to") ?? "/";
  history.replaceState(null, "", `${location.pathname}#${to.startsWith("/") ? to : "/"}`);
  if (isToken(given.get("token"))) {
    signIn(given.get("token"));
  }
}
