// SPDX-License-Identifier: Apache-2.0
// Commands as a shell has them: a line taken apart into words, and words put together as a line.

/** The words of a line, or what is wrong with it. Quotes and backslashes mean what they mean in a shell; nothing is expanded. */
export function wordsOf(line: string): { words: string[]; wrong: string } {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const one = line[at]!;
    if (one === "\\" && quote !== "'") {
      word = (word ?? "") + (line[++at] ?? "");
    } else if (quote !== "") {
      if (one === quote) {
        quote = "";
      } else {
        word += one;
      }
    } else if (one === "'" || one === '"') {
      quote = one;
      word ??= "";
    } else if (/\s/.test(one)) {
      if (word !== null) {
        words.push(word);
      }
      word = null;
    } else {
      word = (word ?? "") + one;
    }
  }
  if (word !== null) {
    words.push(word);
  }
  return { words, wrong: quote === "" ? "" : `a ${quote} has no end` };
}

export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export const lineOf = (words: string[]) => words.map(quoted).join(" ");
