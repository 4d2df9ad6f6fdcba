// SPDX-License-Identifier: Apache-2.0
// A button for what cannot be undone: it asks first.

import { useRef } from "preact/hooks";

/** `title` is what the button says, `question` what would be lost. */
export function Confirm({ title, question, act }: { title: string; question: string; act: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button type="button" onClick={() => dialog.current!.showModal()}>{title}</button>
      <dialog ref={dialog} class="card" aria-label={title}>
        <p>{question}</p>
        <form method="dialog" class="tools">
          <button>Keep it</button>
          <button onClick={act}>{title}</button>
        </form>
      </dialog>
    </>
  );
}
