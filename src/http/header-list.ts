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
