// SPDX-License-Identifier: Apache-2.0
// Files that are tables, as rows of cells: CSV, TSV, and the JSON of MLflow's log_table. A bounded part of them is read.

const ROWS = 200;
const COLUMNS = 30;
const CUT = 500; // characters of a cell

export interface Cells {
  titles: string[];
  rows: string[][];
  more: boolean; // than what is here
}

/** The rows of a text as RFC 4180 has them, at most so many; a quoted cell may have lines and separators. */
function separated(text: string, separator: string, most: number): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const pattern = new RegExp(`(?:"([^"]*(?:""[^"]*)*)"|([^${separator}\\r\\n]*))(${separator}|\\r\\n|\\n|\\r|$)`, "y");
  while (pattern.lastIndex < text.length && rows.length < most) {
    const match = pattern.exec(text)!; // a quote in the wrong place is a part of its cell
    row.push(match[1]?.replaceAll('""', '"') ?? match[2]!);
    if (match[3] !== separator) {
      rows.push(row);
      row = [];
    }
  }
  return row.length > 0 ? [...rows, [...row, ""]] : rows;
}

function bounded(titles: string[], rows: string[][]): Cells {
  const cut = (row: string[]) => row.slice(0, COLUMNS).map((cell) => (cell.length > CUT ? `${cell.slice(0, CUT)}…` : cell));
  return { titles: cut(titles), rows: rows.slice(0, ROWS).map(cut), more: rows.length > ROWS || titles.length > COLUMNS };
}

/** What log_table writes: {"columns": ["a"], "data": [[1]]}. */
function logged(text: string): Cells | null {
  const read = parsed(text) as { columns?: unknown; data?: unknown } | null | undefined;
  if (!Array.isArray(read?.columns) || !Array.isArray(read.data) || !read.data.every(Array.isArray)) {
    return null;
  }
  const word = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return bounded(read.columns.map(word), (read.data as unknown[][]).slice(0, ROWS + 1).map((row) => row.map(word)));
}

/** undefined: it is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON by lines; another text as it is. */
export function indented(text: string): string {
  const read = parsed(text);
  return read === undefined ? text : JSON.stringify(read, null, 2);
}

/** The table of a file with this ending; null: it is none. Without the whole of a text its last row may be cut off, and is left out. */
export function tableOf(ending: string, text: string, whole: boolean): Cells | null {
  if (ending === "json") {
    return whole ? logged(text) : null;
  }
  if (ending !== "csv" && ending !== "tsv") {
    return null;
  }
  const rows = separated(text, ending === "csv" ? "," : "\t", ROWS + 2);
  const [titles, ...rest] = whole || rows.length === ROWS + 2 ? rows : rows.slice(0, -1);
  return titles !== undefined && titles.length > 0 ? bounded(titles, rest) : null;
}
