// SPDX-License-Identifier: Apache-2.0
// Runs before a page does: keeps what is drawn on each canvas as elements of SVG, since it was cleared last.
(() => {
  const drawn = window.drawnOn = new WeakMap();
  const round = (number) => Math.round(number * 10) / 10;
  const line = {
    moveTo: (x, y) => `M${round(x)} ${round(y)}`,
    lineTo: (x, y) => `L${round(x)} ${round(y)}`,
    closePath: () => "Z",
    rect: (x, y, width, height) => `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}Z`,
    bezierCurveTo: (...numbers) => "C" + numbers.map(round).join(" "),
    arc: (x, y, radius) => `M${round(x - radius)} ${round(y)}a${round(radius)} ${round(radius)} 0 1 0 ${round(2 * radius)} 0` +
      `a${round(radius)} ${round(radius)} 0 1 0 ${round(-2 * radius)} 0`,
  };
  const paths = new WeakMap();
  const wrap = (prototype, name, before) => {
    const real = prototype[name];
    prototype[name] = function (...given) {
      before.call(this, ...given);
      return real.apply(this, given);
    };
  };
  for (const [name, write] of Object.entries(line)) {
    for (const prototype of [Path2D.prototype, CanvasRenderingContext2D.prototype]) {
      wrap(prototype, name, function (...given) {
        paths.set(this, (paths.get(this) ?? "") + write(...given));
      });
    }
  }
  const pathOf = (on) => paths.get(on)?.replace(/^L/, "M"); // a line from nowhere begins where it leads
  wrap(Path2D.prototype, "addPath", function (other) {
    paths.set(this, (paths.get(this) ?? "") + (paths.get(other) ?? ""));
  });
  const context = CanvasRenderingContext2D.prototype;
  const add = (on, element) => {
    const at = on.getTransform();
    const moved = at.e !== 0 || at.f !== 0 ? ` transform="translate(${round(at.e)} ${round(at.f)})"` : "";
    drawn.set(on.canvas, [...(drawn.get(on.canvas) ?? []), element.replace("@", moved)]);
  };
  wrap(context, "beginPath", function () {
    paths.set(this, "");
  });
  wrap(context, "clearRect", function () {
    drawn.set(this.canvas, []);
  });
  wrap(context, "stroke", function (path) {
    const dash = this.getLineDash().some((length) => length > 0) ? ` stroke-dasharray="${this.getLineDash().join(" ")}"` : "";
    const d = pathOf(path ?? this);
    if (d && this.lineWidth > 0) {
      add(this, `<path@ d="${d}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}/>`);
    }
  });
  wrap(context, "fill", function (path) {
    const d = pathOf(path instanceof Path2D ? path : this);
    if (d) {
      add(this, `<path@ d="${d}" fill="${this.fillStyle}"/>`);
    }
  });
  wrap(context, "fillRect", function (x, y, width, height) {
    add(this, `<path@ d="${line.rect(x, y, width, height)}" fill="${this.fillStyle}"/>`);
  });
  wrap(context, "fillText", function (text, x, y) {
    const anchor = { center: "middle", right: "end", end: "end" }[this.textAlign] ?? "start";
    const size = parseFloat(/([0-9.]+)px/.exec(this.font)[1]);
    const down = { top: 0.8, middle: 0.35 }[this.textBaseline] ?? 0;
    add(this, `<text@ x="${round(x)}" y="${round(y + down * size)}" font-size="${round(size)}" text-anchor="${anchor}" ` +
      `fill="${this.fillStyle}">${text}</text>`);
  });
})();
