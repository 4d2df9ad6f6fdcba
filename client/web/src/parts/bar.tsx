// SPDX-License-Identifier: Apache-2.0
// Shares of a whole as a bar. Widths are attributes of SVG: the policy of the page allows no styles in elements.

export interface Share {
  kind: "good" | "bad" | "warning" | "running";
  count: number;
  what: string;
}

const WIDTH = 120;
const HEIGHT = 10;

export function Bar({ whole, shares }: { whole: number; shares: Share[] }) {
  const some = shares.filter((share) => share.count > 0);
  let from = 0;
  const parts = some.map((share) => {
    const width = (share.count / Math.max(whole, 1)) * WIDTH;
    from += width;
    return <rect key={share.what} class={`share-${share.kind}`} x={from - width} y={0} width={width} height={HEIGHT} />;
  });
  const label = some.map((share) => `${share.count} ${share.what}`).join(", ") || "none";
  return (
    <svg class="bar" width={WIDTH} height={HEIGHT} role="img" aria-label={`of ${whole}: ${label}`}>
      <title>{`of ${whole}: ${label}`}</title>
      {parts}
    </svg>
  );
}
