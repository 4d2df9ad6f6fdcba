// SPDX-License-Identifier: Apache-2.0
// The artifacts of a run as a tree. Folders are listed when they are opened, and files are fetched when somebody asks for them: small ones
// are shown as text or as a picture, all are downloaded. No file becomes a page of its own, so nothing in it ever runs.

import { artifact, artifacts } from "/web/api.js";
import { element } from "/web/dom.js";
import { size } from "/web/words.js";

const TEXT_BYTES = 256 * 1024; // of a file that is shown as text
const PICTURE_BYTES = 8 * 1024 * 1024;
const PICTURES = { png: "png", jpg: "jpeg", jpeg: "jpeg", gif: "gif", webp: "webp", bmp: "bmp", svg: "svg+xml" };

const nameOf = (path) => path.split("/").pop();
const pictureOf = (path) => PICTURES[nameOf(path).split(".").pop().toLowerCase()];

async function asText(blob) {
  const bytes = await blob.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

class File {
  constructor(tree, file) {
    this.tree = tree;
    this.path = file.path;
    this.size = element("span", { class: "faint" });
    this.shown = element("div", { class: "shown" });
    this.look = element("button", { type: "button", class: "small", onclick: () => this.toggle() }, "Show");
    const save = element("button", { type: "button", class: "small", onclick: () => this.guard(() => this.save()) }, "Download");
    const line = element("div", { class: "file" }, element("span", { class: "name" }, nameOf(file.path)), this.size, this.look, save);
    this.element = element("li", {}, line, this.shown);
    this.update(file);
  }

  update(file) {
    this.bytes = Number(file.file_size ?? 0);
    this.size.textContent = size(this.bytes);
    this.look.hidden = this.bytes > (pictureOf(this.path) ? PICTURE_BYTES : TEXT_BYTES);
  }

  async refresh() {}

  async guard(act) {
    try {
      await act();
    } catch (failure) {
      this.shown.replaceChildren(element("p", { class: "error" }, failure.message));
    }
  }

  async save() {
    const url = URL.createObjectURL(await artifact(this.tree.root, this.path));
    const link = element("a", { href: url, download: nameOf(this.path) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }

  async toggle() {
    const open = this.shown.childElementCount > 0;
    this.look.textContent = open ? "Show" : "Hide";
    if (open) {
      this.shown.replaceChildren();
    } else {
      await this.guard(async () => this.shown.replaceChildren(await this.view()));
    }
  }

  async view() {
    const blob = await artifact(this.tree.root, this.path);
    const kind = pictureOf(this.path);
    if (kind) {
      const url = URL.createObjectURL(new Blob([blob], { type: `image/${kind}` }));
      const free = () => URL.revokeObjectURL(url);
      const picture = element("img", { src: url, alt: nameOf(this.path) });
      picture.addEventListener("load", free);
      picture.addEventListener("error", free);
      return picture;
    }
    const text = await asText(blob);
    return text === null ? element("p", { class: "faint" }, "This file is no text.") : element("pre", { tabindex: "0" }, text);
  }
}

class Folder {
  constructor(tree, path) {
    this.tree = tree;
    this.path = path;
    this.items = new Map(); // by path
    this.list = element("ul");
    this.said = element("p", { class: "faint", hidden: true });
    this.details = element("details", { ontoggle: () => this.guarded() }, element("summary", {}, nameOf(path)), this.said, this.list);
    this.element = element("li", {}, this.details);
  }

  update() {}

  async guarded() {
    try {
      await this.refresh();
    } catch (failure) {
      this.said.hidden = false;
      this.said.textContent = failure.message;
    }
  }

  /** Lists it where it is open. What was there keeps its element, and so what of it is open. */
  async refresh(signal) {
    if (this.path !== "" && !this.details.open) {
      return;
    }
    const { root, files } = await artifacts(this.tree.run, this.path, signal);
    this.tree.root = root;
    const before = this.items;
    this.items = new Map(files.map((file) => {
      const item = before.get(file.path) ?? (file.is_dir ? new Folder(this.tree, file.path) : new File(this.tree, file));
      item.update(file);
      return [file.path, item];
    }));
    const children = [...this.items.values()].map((item) => item.element);
    if (children.some((child, index) => this.list.children[index] !== child) || children.length !== this.list.children.length) {
      this.list.replaceChildren(...children);
    }
    this.said.hidden = files.length > 0;
    this.said.textContent = this.path === "" ? "None yet." : "This folder is empty.";
    await Promise.all([...this.items.values()].map((item) => item.refresh(signal)));
  }
}

export class Artifacts {
  constructor(run) {
    this.run = run;
    this.root = "";
    this.top = new Folder(this, "");
    this.element = element("div", { class: "tree" }, this.top.said, this.top.list);
  }

  async refresh(signal) {
    try {
      await this.top.refresh(signal);
    } catch (failure) {
      if (failure.status === 401 || failure.status === undefined) {
        throw failure;
      }
      this.top.said.hidden = false;
      this.top.said.textContent = failure.message; // they may lie on another server
    }
  }
}
