// SPDX-License-Identifier: Apache-2.0
// A table with a row for each item.

import type { ComponentChildren } from "preact";

interface TableProps {
  titles: ComponentChildren[];
  rows: ComponentChildren[][];
  keys?: string[];
  marked?: boolean[]; // rows that stand out
}

/** Somebody without a mouse can scroll it, too. Columns whose title is a text that begins with # hold numbers. `keys` name the rows, so that a row that stays keeps its element. */
export function Table({ titles, rows, keys, marked }: TableProps) {
  const kind = titles.map((title) => (typeof title === "string" && title.startsWith("#") ? "number" : undefined));
  return (
    <div class="table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {titles.map((title, index) => <th key={index} scope="col" class={kind[index]}>{typeof title === "string" ? title.replace(/^#/, "") : title}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={keys?.[row] ?? row} class={marked?.[row] ? "marked" : undefined}>{cells.map((cell, index) => <td key={index} class={kind[index]}>{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
