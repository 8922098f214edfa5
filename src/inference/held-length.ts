// How much of a text must be held back, because what follows may turn its end into a stop string or a tag.

/** The length of the longest suffix of the text that is a prefix of one of the strings, but not the whole string. */
export function heldLength(text: string, strings: readonly string[]): number {
  let longest = 0;
  for (const one of strings)
    for (let length = Math.min(one.length - 1, text.length); length > longest; length--)
      if (text.endsWith(one.slice(0, length))) longest = length;
  return longest;
}
