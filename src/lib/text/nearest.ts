// "Did you mean …?": the candidate with the fewest edits, if it is close enough to be a typo.

export function nearest(
  word: string,
  candidates: readonly string[],
  maxEdits = Math.ceil(word.length / 3),
): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(word, candidate) }))
    .sort((a, b) => a.distance - b.distance)[0];
  if (ranked === undefined || ranked.distance > maxEdits) return undefined;
  return ranked.candidate;
}

function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const substitution = (row[j - 1] as number) + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, substitution));
    }
    row = next;
  }
  return row[other.length] as number;
}
