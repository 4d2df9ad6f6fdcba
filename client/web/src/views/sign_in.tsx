// SPDX-License-Identifier: Apache-2.0
// The form of somebody who is not signed in.

import { useRef, useState } from "preact/hooks";

import { Failure, signIn } from "../controller/api";
import { isToken } from "../controller/session";

/** `why` says why the form is shown; `done` is called once the controller has taken a token. */
export function SignInView({ why, done }: { why: string; done: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [refused, setRefused] = useState(why);
  const submit = (event: Event) => {
    event.preventDefault();
    const token = field.current!.value.trim();
    if (!isToken(token)) {
      setRefused("A token is one word of letters, digits and signs.");
      return;
    }
    signIn({ token }).then(done, (failure: unknown) => {
      if (!(failure instanceof Failure)) {
        throw failure;
      }
      field.current!.value = "";
      setRefused(failure.status === 0 ? failure.message : `The controller refuses this token: ${failure.message}`);
    });
  };
  return (
    <section class="card sign-in">
      <h1>Sign in</h1>
      <p>In a terminal of your machine, <code>gpuctl open</code> opens this page signed in.</p>
      <p>Or paste your token. <code>gpuctl open --link</code> prints a link that signs in once.</p>
      <form onSubmit={submit}>
        <label for="token">Token</label>
        <div class="row">
          <input ref={field} id="token" name="token" type="password" autocomplete="off" spellcheck={false} required aria-describedby="refused" />
          <button type="submit">Sign in</button>
        </div>
        <p id="refused" class="error" role="alert">{refused}</p>
      </form>
    </section>
  );
}
