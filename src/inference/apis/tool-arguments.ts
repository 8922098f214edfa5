// The arguments of a tool call as an object, for APIs that don't send them as text.

/** Arguments that are not a JSON object are passed on as text, for the tool to refuse. */
export function toArguments(text: string): object {
  if (text.trim() === '') return {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed;
  } catch {}
  return { invalid_arguments: text };
}
