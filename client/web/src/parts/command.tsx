// SPDX-License-Identifier: Apache-2.0
// A line to copy, such as a command or a secret, with a button that does it. Where the browser lets no page copy, the line is selected instead.

import { useRef, useState } from "preact/hooks";

export function Command({ line, label }: { line: string; label: string }) {
  const field = useRef<HTMLInputElement>(null);
  const [said, setSaid] = useState({ line, text: "" });
  const say = (text: string) => setSaid({ line, text });
  const select = () => {
    field.current!.select();
    say("Selected: copy it with the keyboard");
  };
  const copy = () => {
    if (!navigator.clipboard) { // only pages of https and of this machine have one
      select();
      return;
    }
    navigator.clipboard.writeText(line).then(() => say("Copied"), select);
  };
  return (
    <div class="command">
      <input ref={field} readOnly value={line} aria-label={label} />
      <button type="button" onClick={copy}>Copy</button>
      <span role="status" class="faint">{said.line === line ? said.text : ""}</span>
    </div>
  );
}
