// SPDX-License-Identifier: Apache-2.0
// A table with a row for each item.

import type { ComponentChildren } from "preact";

/** Columns whose title begins with # hold numbers. `keys` name the rows, so that a row that stays keeps its element. */
export function Table({ titles, rows, keys }: { titles: string[]; rows: ComponentChildren[][]; keys?: string[] }) {
  const kind = titles.map((title) => (title.startsWith("#") ? "number" : undefined));
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            {titles.map((title, index) => <th key={title} scope="col" class={kind[index]}>{title.replace(/^#/, "")}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={keys?.[row] ?? row}>{cells.map((cell, index) => <td key={index} class={kind[index]}>{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
