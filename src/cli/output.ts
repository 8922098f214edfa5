// What commands print: tables for people, JSON for programs, and the error that ends a command, such as for a name
// that matches nothing.

/** Ends the command: prints the message, unless it is empty, to stderr and exits with the code. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** Replaces control and bidirectional characters, so that a name can't command the terminal. */
export const toPrintable = (text: string) =>
  text.replaceAll(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '�');

export function renderTable(headers: string[], given: string[][]): string {
  const rows = given.map((row) => row.map(toPrintable));
  const widths = headers.map((header, column) =>
    Math.max(header.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [headers, ...rows].map(line).join('\n');
}

export const printTable = (headers: string[], rows: string[][]) =>
  console.log(renderTable(headers, rows));

/** The only item that matches. Throws a CliError if none does, or several do. `command` lists them all. */
export function pickOnly<Item extends { readonly id: string }>(
  matches: readonly Item[],
  { noun, wanted, command }: { noun: string; wanted: string; command: string },
): Item {
  const [only, second] = matches;
  if (only === undefined) throw new CliError(`There is no ${noun} ${wanted}. See \`${command}\`.`);
  if (second === undefined) return only;
  const ids = matches.map(({ id }) => id).join(', ');
  throw new CliError(`${wanted} matches more than one ${noun}. Give the id: ${ids}.`);
}

export const printJson = (value: unknown) => console.log(JSON.stringify(value, null, 2));
