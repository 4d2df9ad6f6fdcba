// SPDX-License-Identifier: Apache-2.0
// A function: what a page shows down to a height, as a document of SVG. recorder.js has what is on its canvases.
(most) => {
  const round = (number) => Math.round(number * 10) / 10;
  const escape = (text) => text.replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one]);
  const out = [];
  const seen = (colour) => !/^rgba\(.*, 0\)$|^transparent$/.test(colour);
  const text = (words, box, style) => {
    const size = parseFloat(style.fontSize);
    const family = /mono/i.test(style.fontFamily) ? ' class="m"' : "";
    const weight = Number(style.fontWeight) > 400 ? ' font-weight="700"' : "";
    out.push(`<text${family}${weight} x="${round(box.left)}" y="${round(box.top + box.height / 2 + size * 0.36)}" font-size="${round(size)}" ` +
      `fill="${style.color}" textLength="${round(box.width)}" lengthAdjust="spacingAndGlyphs">${escape(words)}</text>`);
  };
  const lines = (node) => {
    const range = document.createRange();
    const found = [];
    for (const word of node.data.matchAll(/\S+/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const box = range.getBoundingClientRect();
      const last = found[found.length - 1];
      if (last !== undefined && Math.abs(last.top - box.top) < 2 && box.left - last.right < 12) {
        last.words += node.data.slice(last.end, word.index).replace(/\s+/g, " ") + word[0];
        last.right = box.right;
        last.end = word.index + word[0].length;
      } else if (box.width > 0) {
        found.push({ words: word[0], left: box.left, top: box.top, right: box.right, height: box.height, end: word.index + word[0].length });
      }
    }
    return found;
  };
  const box = (of, style) => {
    const sides = ["Top", "Right", "Bottom", "Left"].map((side) =>
      style[`border${side}Style`] !== "none" && parseFloat(style[`border${side}Width`]) > 0 ? style[`border${side}Color`] : "");
    const corner = parseFloat(style.borderTopLeftRadius) || 0;
    const radius = style.borderTopLeftRadius.endsWith("%") ? of.width * corner / 100 : corner;
    const fill = seen(style.backgroundColor) ? style.backgroundColor : "none";
    const framed = sides.every((side) => side !== "" && side === sides[0] && seen(side));
    if (fill !== "none" || framed) {
      const half = framed ? 0.5 : 0;
      out.push(`<rect x="${round(of.left + half)}" y="${round(of.top + half)}" width="${round(of.width - 2 * half)}" ` +
        `height="${round(of.height - 2 * half)}"${radius > 0 ? ` rx="${round(radius)}"` : ""} fill="${fill}"${framed ? ` stroke="${sides[0]}"` : ""}/>`);
    }
    if (!framed) {
      const ends = [[of.left, of.top, of.right, of.top], [of.right, of.top, of.right, of.bottom], [of.left, of.bottom, of.right, of.bottom], [of.left, of.top, of.left, of.bottom]];
      sides.forEach((side, at) => {
        if (side !== "" && seen(side)) {
          out.push(`<path d="M${round(ends[at][0])} ${round(ends[at][1])}L${round(ends[at][2])} ${round(ends[at][3])}" stroke="${side}"/>`);
        }
      });
    }
  };
  // What a style puts before an element: a mark with a colour, or a text.
  const sign = (element, of) => {
    const style = getComputedStyle(element, "::before");
    const words = /^"(.+)"$/.exec(style.content)?.[1];
    const [width, height] = [parseFloat(style.width), parseFloat(style.height)];
    if (words !== undefined) {
      const size = parseFloat(style.fontSize);
      text(words, { left: of.left + (parseFloat(style.marginLeft) || 0), top: of.top, height: of.height, width: words.length * size * 0.4 }, style);
    } else if (style.content === '""' && width > 0 && height > 0) {
      const top = of.top + (of.height - height) / 2;
      box({ left: of.left, top, right: of.left + width, bottom: top + height, width, height }, style);
    }
  };
  const shape = (element) => {
    const copy = element.cloneNode(true);
    const [from, to] = [element, copy].map((one) => [one, ...one.querySelectorAll("*")]);
    from.forEach((one, at) => {
      const style = getComputedStyle(one);
      for (const name of ["fill", "stroke", "font-size", "stroke-width", "text-anchor", "opacity"]) {
        if (["rect", "path", "line", "circle", "text", "polyline", "polygon", "g"].includes(one.tagName)) {
          to[at].setAttribute(name, style.getPropertyValue(name));
        }
      }
      for (const name of ["class", "role", "style", "tabindex", ...one.getAttributeNames().filter((name) => name.startsWith("aria-"))]) {
        to[at].removeAttribute(name);
      }
    });
    const of = element.getBoundingClientRect();
    for (const [name, value] of [["x", of.left], ["y", of.top], ["width", of.width], ["height", of.height]]) {
      copy.setAttribute(name, round(value));
    }
    out.push(new XMLSerializer().serializeToString(copy));
  };
  const walk = (element, within) => {
    const style = getComputedStyle(element);
    const of = element.getBoundingClientRect();
    if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0" || of.top >= most) {
      return;
    }
    const isHidden = of.width > 0 && of.width <= 2 && of.height <= 2;
    if (isHidden || of.bottom < within.top || of.top > within.bottom) {
      return;
    }
    if (style.display !== "contents" && of.width > 0) {
      box(of, style);
    }
    if (element.tagName === "svg") {
      return shape(element);
    }
    sign(element, of);
    if (element.tagName === "CANVAS") {
      const scale = of.width / element.width;
      out.push(`<g transform="translate(${round(of.left)} ${round(of.top)}) scale(${scale})">${(drawnOn.get(element) ?? []).join("")}</g>`);
      return;
    }
    if (element.tagName === "INPUT" || element.tagName === "SELECT") {
      const words = element.tagName === "SELECT" ? element.selectedOptions[0]?.label ?? "" : element.type === "checkbox" ? "" : element.value;
      if (words !== "") {
        const size = parseFloat(style.fontSize);
        text(words, { left: of.left + parseFloat(style.paddingLeft) + 1, top: of.top, height: of.height, width: words.length * size * 0.55 }, style);
      }
      return;
    }
    const clips = style.overflowY !== "visible";
    const inner = clips ? { top: Math.max(of.top, within.top), bottom: Math.min(of.bottom, within.bottom) } : within;
    for (const node of element.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) {
        for (const line of lines(node)) {
          const middle = line.top + line.height / 2;
          if (middle > inner.top && middle < inner.bottom && line.top + line.height <= most) {
            text(line.words, { ...line, width: line.right - line.left }, style);
          }
        }
      } else if (node.nodeType === Node.ELEMENT_NODE && !["SCRIPT", "STYLE"].includes(node.tagName)) {
        walk(node, inner);
      }
    }
  };
  const height = Math.min(most, document.documentElement.scrollHeight);
  const width = document.documentElement.clientWidth;
  walk(document.body, { top: 0, bottom: height });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui,Helvetica,Arial,sans-serif" text-rendering="geometricPrecision">` +
    `<style>.m{font-family:ui-monospace,Menlo,Consolas,monospace}text{white-space:pre}</style>` +
    `<rect width="${width}" height="${height}" fill="${getComputedStyle(document.body).backgroundColor}"/>${out.join("\n")}</svg>\n`;
}
