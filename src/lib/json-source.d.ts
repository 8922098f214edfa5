// Parts of JavaScript that TypeScript's library does not describe yet: how a number was written.

interface JSON {
  rawJSON(text: string): object;
  parse(
    text: string,
    reviver: (name: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
}
