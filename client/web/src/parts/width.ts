// SPDX-License-Identifier: Apache-2.0
// The width of an element, so that a picture in it has as many units as pixels.

import { useEffect, useRef, useState } from "preact/hooks";

export function useWidth(): [{ current: HTMLElement | null }, number] {
  const element = useRef<HTMLElement | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    watch.observe(element.current!);
    return () => watch.disconnect();
  }, []);
  return [element, width];
}
