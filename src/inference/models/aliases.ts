// Other names for models: patterns such as `claude-*`, for clients that only know the names of hosted services.

/** Patterns in the order of the configuration, with the id of the model that each stands for. `*` is any text. */
export type Aliases = readonly (readonly [pattern: string, to: string])[];

/** The model of the first pattern that matches. */
export const findAlias = (aliases: Aliases, name: string): string | undefined =>
  aliases.find(([pattern]) => matches(pattern, name))?.[1];

/** Takes each text between two stars where it first occurs, so that no pattern is slow. */
function matches(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  const last = parts.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of parts) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
