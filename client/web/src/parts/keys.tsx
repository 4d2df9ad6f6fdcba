// SPDX-License-Identifier: Apache-2.0
// Keys that work in every view: one goes to the first field, two letters go to a view, and ? lists them.

import { useEffect, useRef, useState } from "preact/hooks";

export interface Place {
  letter: string; // behind g
  text: string;
  path: string;
}

const TYPED = "input:not([type=checkbox]), textarea, select, [contenteditable]";
const PAIR_MS = 1500; // between g and the letter

export function Keys({ places }: { places: Place[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [shown, show] = useState(false);
  useEffect(() => {
    let went = 0; // when g was pressed
    const pressed = (event: KeyboardEvent) => {
      if (event.altKey || event.ctrlKey || event.metaKey || (event.target instanceof Element && event.target.closest(TYPED))) {
        return;
      }
      const place = event.timeStamp - went < PAIR_MS ? places.find((one) => one.letter === event.key) : undefined;
      went = event.key === "g" ? event.timeStamp : 0;
      if (place !== undefined) {
        location.hash = `#${place.path}`;
      } else if (event.key === "/") {
        document.querySelector<HTMLElement>("main input[type=search], main select")?.focus();
        event.preventDefault();
      } else if (event.key === "?") {
        show(true);
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [places]);
  useEffect(() => {
    if (shown) {
      dialog.current?.showModal();
    }
  }, [shown]);
  const lines: [string, string][] = [
    ...places.map((place): [string, string] => [`g ${place.letter}`, place.text]),
    ["/", "The first field of the view"],
    ["↑ ↓", "From row to row in a table"],
    ["Space", "Select the row"],
    ["?", "This list"],
  ];
  return shown ? (
    <dialog ref={dialog} class="card" aria-label="Keys" onClose={() => show(false)}>
      <h2>Keys</h2>
      <dl>{lines.map(([key, text]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{text}</dd></div>)}</dl>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  ) : null;
}
