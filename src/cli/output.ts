// What the terminal sees: tables, JSON for programs, and errors that say what to do.

/** Ends the command with its message on stderr, if it has one, and an exit code. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** Names may be anybody's: what a terminal would obey, or show in another order, is shown as a sign. */
export const toShown = (text: string) =>
  text.replaceAll(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '�');

export function printTable(headers: string[], given: string[][]): void {
  const rows = given.map((row) => row.map(toShown));
  const widths = headers.map((header, column) =>
    Math.max(header.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  console.log([headers, ...rows].map(line).join('\n'));
}

export const printJson = (value: unknown) => console.log(JSON.stringify(value, null, 2));
