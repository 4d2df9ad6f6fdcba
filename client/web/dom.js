// SPDX-License-Identifier: Apache-2.0
// Elements of the page. Texts become text nodes and nothing else, so no text from outside is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick" || name === "onsubmit" || name === "ontoggle") {
      made.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

/** An HTML element. Attributes that are null, undefined or false are left out, and so are empty children. */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An element of SVG. */
export function drawn(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

const marks = new WeakMap();

/** Replaces the children of an element, unless `mark` says that they are what they were. */
export function replace(parent, mark, make) {
  if (marks.get(parent) !== mark) {
    marks.set(parent, mark);
    parent.replaceChildren(...[make()].flat().filter((child) => child !== null));
  }
}

/** A table with a row for each item; each cell is a text or an element. Columns whose title begins with # hold numbers. */
export function table(titles, rows) {
  const numeric = titles.map((title) => (title.startsWith("#") ? "number" : null));
  const head = titles.map((title, index) => element("th", { scope: "col", class: numeric[index] }, title.replace(/^#/, "")));
  const body = rows.map((cells) => element("tr", {}, cells.map((cell, index) => element("td", { class: numeric[index] }, cell))));
  return element("div", { class: "table" }, element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)));
}
