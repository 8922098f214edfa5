// Sets of characters as sorted ranges of code points.

/** First and last code point, both included. */
export type CharRange = readonly [first: number, last: number];

const lastCodePoint = 0x10ffff;

/** Sorts the ranges and merges those that touch or overlap. */
export function normalise(ranges: readonly CharRange[]): CharRange[] {
  const merged: [number, number][] = [];
  for (const [first, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], end);
    else merged.push([first, end]);
  }
  return merged;
}

export function complement(ranges: readonly CharRange[]): CharRange[] {
  const outside: CharRange[] = [];
  let from = 0;
  for (const [first, end] of normalise(ranges)) {
    if (first > from) outside.push([from, first - 1]);
    from = end + 1;
  }
  if (from <= lastCodePoint) outside.push([from, lastCodePoint]);
  return outside;
}

export function intersectRanges(a: readonly CharRange[], b: readonly CharRange[]): CharRange[] {
  return a.flatMap(([first, end]) =>
    b.flatMap(([from, to]): CharRange[] =>
      first <= to && from <= end ? [[Math.max(first, from), Math.min(end, to)]] : [],
    ),
  );
}

/** The characters that `.` does not match. */
export const lineEnds: readonly CharRange[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];

/** The characters of `\\d`, `\\w` and `\\s`. */
export const classEscapes: Record<string, readonly CharRange[]> = {
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
