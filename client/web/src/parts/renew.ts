// SPDX-License-Identifier: Apache-2.0
// What a view shows comes from the controller, and is fetched again: each few seconds while there will be news, after a while where no answer
// came, and when somebody comes back to the page. Nobody looks at a page in the background: there nothing is fetched.

import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";

import { Failure, renewSession } from "../controller/api";

const RENEW_MS = 3000;
export const AGAIN_MS = 5000; // after a request that got no answer

/** What the frame around the views does: it says what is the matter, or that all is well (null). */
export interface Frame {
  heed: (failure: Failure | null) => void;
  setCrumbs: (crumbs: Crumb[]) => void;
}
export interface Crumb {
  text: string;
  href?: string;
}
export const FrameContext = createContext<Frame>({ heed: () => undefined, setCrumbs: () => undefined });

export const isForLater = (failure: Failure) => failure.status === 0 || failure.status === 429 || failure.status >= 500;

function whenSeen(act: () => void, signal: AbortSignal): void {
  if (document.visibilityState === "visible") {
    act();
  } else {
    onReturn(act, signal);
  }
}

function onReturn(act: () => void, signal: AbortSignal): void {
  document.addEventListener("visibilitychange", () => whenSeen(act, signal), { once: true, signal });
}

/** What `load` gave last; undefined before the first time. It says whether there will be `more` to fetch, and is called anew when the key
 * changes or `again` is called; else each renewMs. */
export function useRenewed<T>(key: string, load: (signal: AbortSignal) => Promise<{ value: T; more: boolean }>, renewMs = RENEW_MS): [T | undefined, () => void] {
  const frame = useContext(FrameContext);
  const [found, setFound] = useState<{ value: T }>();
  const [turn, setTurn] = useState(0);
  const newest = useRef(load);
  newest.current = load;
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const later = (pause: number) => {
      timer = window.setTimeout(() => whenSeen(fetchNow, stop.signal), pause);
    };
    const fetchNow = () => {
      renewSession()
        .then(() => newest.current(stop.signal))
        .then(
          ({ value, more }) => {
            if (stop.signal.aborted) {
              return;
            }
            setFound({ value });
            frame.heed(null);
            if (more) {
              later(renewMs);
            } else {
              onReturn(fetchNow, stop.signal); // a controller of one person's own ends when nobody asks it anything
            }
          },
          (failure: unknown) => {
            if (stop.signal.aborted) {
              return;
            }
            if (!(failure instanceof Failure)) {
              throw failure;
            }
            frame.heed(failure);
            if (isForLater(failure)) {
              later(AGAIN_MS);
            }
          },
        );
    };
    fetchNow();
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
  }, [key, turn]);
  return [found?.value, () => setTurn((count) => count + 1)];
}

/** Names the view in the path at the top and in the title of the page. */
export function useCrumbs(...crumbs: Crumb[]): void {
  const frame = useContext(FrameContext);
  useEffect(() => frame.setCrumbs(crumbs), [JSON.stringify(crumbs)]);
}
