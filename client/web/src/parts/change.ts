// SPDX-License-Identifier: Apache-2.0
// A change that somebody asks for: what the controller refuses is said, and what is shown is fetched again.

import { useState } from "preact/hooks";

import { Failure } from "../controller/api";

/** What was refused last, "" for nothing; and the function that awaits a change. `name` stands before what is refused. */
export function useChange(again: () => void): [string, (change: Promise<void>, name?: string) => void] {
  const [refused, setRefused] = useState("");
  const tryTo = (change: Promise<void>, name?: string) => {
    change.then(
      () => setRefused(""),
      (failure: unknown) => {
        if (!(failure instanceof Failure)) {
          throw failure;
        }
        setRefused(name === undefined ? failure.message : `${name}: ${failure.message}`);
      },
    ).then(again, again);
  };
  return [refused, tryTo];
}
