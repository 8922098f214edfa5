// Sets of characters as sorted ranges of code points.

import type { Range } from '#inference/engines/local/grammar/rules/gbnf.ts';

const last = 0x10ffff;

/** Sorted, and without gaps of nothing between two ranges. */
export function normalise(ranges: readonly Range[]): Range[] {
  const merged: [number, number][] = [];
  for (const [first, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], end);
    else merged.push([first, end]);
  }
  return merged;
}

export function complement(ranges: readonly Range[]): Range[] {
  const outside: Range[] = [];
  let from = 0;
  for (const [first, end] of normalise(ranges)) {
    if (first > from) outside.push([from, first - 1]);
    from = end + 1;
  }
  if (from <= last) outside.push([from, last]);
  return outside;
}

export function intersectRanges(a: readonly Range[], b: readonly Range[]): Range[] {
  return a.flatMap(([first, end]) =>
    b.flatMap(([from, to]): Range[] =>
      first <= to && from <= end ? [[Math.max(first, from), Math.min(end, to)]] : [],
    ),
  );
}

/** What `.` doesn't match. */
export const lineEnds: readonly Range[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];

/** `\\d`, `\\w` and `\\s`. */
export const classEscapes: Record<string, readonly Range[]> = {
  d: [[0x30, 0x39]],
  w: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x5f, 0x5f],
    [0x61, 0x7a],
  ],
  s: [
    [0x09, 0x0d],
    [0x20, 0x20],
    [0xa0, 0xa0],
    [0x1680, 0x1680],
    [0x2000, 0x200a],
    [0x2028, 0x2029],
    [0x202f, 0x202f],
    [0x205f, 0x205f],
    [0x3000, 0x3000],
    [0xfeff, 0xfeff],
  ],
};
