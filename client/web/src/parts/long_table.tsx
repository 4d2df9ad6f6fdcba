// SPDX-License-Identifier: Apache-2.0
// A table of very many rows of the same height, of which only those exist that can be seen, and a few around them. The arrow keys go from row
// to row: from what has the focus to the same in the next one.

import type { ComponentChildren, RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const ROW = 38; // px: the style sheet says the same
const AROUND = 15; // rows above and below those that can be seen

export interface Column {
  title: string;
  number?: boolean;
  /** Given: its title sorts by it. */
  sort?: { now: "ascending" | "descending" | "none"; press: () => void };
}

/** The rows from first to the one before last that are near the visible part of the page. */
function useNear(body: RefObject<HTMLTableSectionElement>, count: number): [number, number] {
  const [near, setNear] = useState<[number, number]>([0, 60]);
  useLayoutEffect(() => {
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / ROW) - AROUND);
      const last = Math.ceil((innerHeight - top) / ROW) + AROUND;
      setNear(([before, after]) => (before === first && after === last ? [before, after] : [first, last]));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [count]);
  const last = Math.min(count, Math.max(near[1], 0));
  return [Math.min(near[0], last), last];
}

const FOCUSED = "a[href], input, button, select";

/** Moves the focus to the same control of another row. */
function moveFocus(event: KeyboardEvent): void {
  const step = event.key === "ArrowDown" ? "nextElementSibling" : event.key === "ArrowUp" ? "previousElementSibling" : undefined;
  const from = event.target instanceof Element ? event.target.closest("tr") : null;
  if (step === undefined || from === null || event.altKey || event.ctrlKey || event.metaKey) {
    return;
  }
  const place = [...from.querySelectorAll(FOCUSED)].indexOf(event.target as Element);
  const other = from[step]?.querySelectorAll<HTMLElement>(FOCUSED)[place];
  if (other !== undefined) {
    event.preventDefault();
    other.focus();
    other.scrollIntoView({ block: "nearest" });
    dispatchEvent(new Event("scroll")); // the browser's own comes with the next frame, and another key may come before it
  }
}

function Gap({ rows, columns }: { rows: number; columns: number }) {
  const stretch = (cell: HTMLTableCellElement | null) => cell?.style.setProperty("height", `${rows * ROW}px`);
  return rows > 0 ? <tr aria-hidden="true" class="gap"><td colSpan={columns} ref={stretch} /></tr> : null;
}

export function LongTable({ columns, count, row, keyOf, seen }: {
  columns: Column[];
  count: number;
  row: (index: number) => ComponentChildren[];
  keyOf: (index: number) => string;
  /** Gets the first and the last row that exist. */
  seen: { current: [number, number] };
}) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [first, last] = useNear(body, count);
  seen.current = [first, last];
  return (
    <div class="table long">
      <table aria-rowcount={count + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ title, number, sort }) => (
              <th key={title} scope="col" class={number ? "number" : undefined} {...(sort && { "aria-sort": sort.now })}>
                {sort ? <button type="button" onClick={sort.press}>{title}</button> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body} onKeyDown={moveFocus}>
          <Gap rows={first} columns={columns.length} />
          {Array.from({ length: last - first }, (_, at) => first + at).map((index) => (
            <tr key={keyOf(index)} aria-rowindex={index + 2}>
              {row(index).map((cell, at) => <td key={at} class={columns[at]!.number ? "number" : undefined}>{cell}</td>)}
            </tr>
          ))}
          <Gap rows={count - last} columns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}
