// SPDX-License-Identifier: Apache-2.0
// Who is signed in. The session is a cookie that no script can read, and a proof that goes into a header of each request: browsers send the
// cookie to every port of a host, and the proof stays with this origin. The token that somebody types is sent once, and kept nowhere.

const KEY = "gpuctl.session";

export interface Person {
  owner: string;
  role: "viewer" | "user" | "operator" | "admin";
}

interface Kept extends Person {
  proof: string;
  begun: number; // ms since 1970, as the next
  expires: number;
}

/** A token is printable ASCII without spaces. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

function kept(): Kept | null {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "null") as Kept | null;
  } catch {
    return null;
  }
}

/** The proof of the session; undefined: nobody is signed in. */
export function proof(): string | undefined {
  return kept()?.proof;
}

/** Who is signed in; null: nobody. */
export function person(): Person | null {
  return kept();
}

/** Whether they may submit jobs, and have secrets for them. */
export function maySubmit(): boolean {
  return person()?.role !== "viewer";
}

/** Whether they may change nodes, and jobs of others. */
export function mayOperate(): boolean {
  const role = person()?.role;
  return role === "operator" || role === "admin";
}

/** Whether they may see who did what. */
export function mayAudit(): boolean {
  return person()?.role === "admin";
}

/** Whether half of the session's life is over. */
export function isHalfOver(): boolean {
  const session = kept();
  return session !== null && Date.now() > (session.begun + session.expires) / 2;
}

/** Keeps what the controller said of a new session. */
export function keep({ owner, role, proof, expires_at }: Person & { proof: string; expires_at: string }): void {
  const made: Kept = { owner, role, proof, begun: Date.now(), expires: Date.parse(expires_at) };
  localStorage.setItem(KEY, JSON.stringify(made));
}

export function forget(): void {
  localStorage.removeItem(KEY);
}

/** `gpuctl open` brings a code in the fragment, "#code=C&to=/experiments/1": takes it out of the address, and returns it. */
export function codeOfAddress(): string | null {
  if (!location.hash.startsWith("#code=")) {
    return null;
  }
  const given = new URLSearchParams(location.hash.slice(1));
  const to = given.get("to") ?? "/";
  history.replaceState(null, "", `${location.pathname}#${to.startsWith("/") ? to : "/"}`);
  return given.get("code");
}
