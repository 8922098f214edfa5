// Remembers by name what takes longer to find than to use: series of metrics, loggers with their labels.

/** Names come from outside, so that there is a bound: beyond it all are made anew. */
const mostKnown = 1000;

export function remember<Kind, Made>(
  nameOf: (kind: Kind) => string,
  make: (kind: Kind) => Made,
): (kind: Kind) => Made {
  const known = new Map<string, Made>();
  return (kind) => {
    const name = nameOf(kind);
    const found = known.get(name);
    if (found !== undefined) return found;
    if (known.size >= mostKnown) known.clear();
    const made = make(kind);
    known.set(name, made);
    return made;
  };
}
