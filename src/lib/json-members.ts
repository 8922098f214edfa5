// Reads JSON that nothing has checked.

export type Members = Record<string, unknown>;

/** True for an object that is not a list. */
export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The members of an object; none of any other value. */
export const membersOf = (value: unknown): Readonly<Members> => (isMembers(value) ? value : {});

/** Empty if the value is not a text. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Null if the text is not a JSON object. */
export function parseMembers(text: string): Members | null {
  try {
    const value: unknown = JSON.parse(text);
    return isMembers(value) ? value : null;
  } catch {
    return null;
  }
}
