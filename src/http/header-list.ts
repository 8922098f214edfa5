// Headers as a list of names and values in turn, as Node writes them with the least work: every answer has a
// dozen. An object of them is for those who look one up.

export type HeaderList = (string | number)[];

/** Of those with the same name the last one stays. */
export function toHeaderObject<Value extends string | number>(
  list: readonly Value[],
): Record<string, Value> {
  const headers: Record<string, Value> = {};
  for (let at = 0; at + 1 < list.length; at += 2) headers[String(list[at])] = list[at + 1] as Value;
  return headers;
}
