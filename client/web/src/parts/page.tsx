// SPDX-License-Identifier: Apache-2.0
// What pages of one thing are made of: facts in a list, and parts with a title.

import type { ComponentChildren } from "preact";

/** A line of a list of facts; nothing where there is nothing to say. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return children ? <><dt>{name}</dt><dd>{children}</dd></> : null;
}

/** `kind` is its class, which orders parts on narrow screens. */
export function Part({ title, kind, children }: { title: string; kind: string; children: ComponentChildren }) {
  return <section class={`part ${kind}`}><h2>{title}</h2>{children}</section>;
}
