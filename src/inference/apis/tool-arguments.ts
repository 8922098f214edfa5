// The arguments of a tool call as an object, for APIs that don't send them as text.

/** Arguments that are not a JSON object are passed on as text, for the tool to refuse. */
export const toArguments = (text: string): object =>
  text.trim() === '' ? {} : (readObject(text) ?? { invalid_arguments: text });

/** Null if the text is not a JSON object. */
export function readObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {}
  return null;
}
