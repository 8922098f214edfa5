// Response headers as a list of alternating names and values, which Node writes with the least work.

export type HeaderList = (string | number)[];

/** If a name occurs more than once, the last value wins. */
export function toHeaderObject<Value extends string | number>(
  list: readonly Value[],
): Record<string, Value> {
  const headers: Record<string, Value> = {};
  for (let at = 0; at + 1 < list.length; at += 2) headers[String(list[at])] = list[at + 1] as Value;
  return headers;
}

/** Adds headers to a list, in the place of those with the same name. */
export function mergeHeaders(list: HeaderList, more: Readonly<HeaderList>): void {
  for (let at = 0; at + 1 < more.length; at += 2) {
    const [name, value] = [more[at] as string, more[at + 1] as string];
    let found = 0;
    while (found < list.length && list[found] !== name) found += 2;
    list[found] = name;
    list[found + 1] = value;
  }
}
