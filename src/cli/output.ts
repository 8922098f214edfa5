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

/** Keeps line breaks, for text of several lines. */
export const toPrintableLines = (text: string) => text.split('\n').map(toPrintable).join('\n');

/** Prints a text with parts that the server sent. */
export const printText = (text: string) => console.log(toPrintableLines(text));

/** `columns` is the width of the terminal. Cells that do not fit are cut off, the widest columns first. */
export function renderTable(headers: string[], given: string[][], columns = Infinity): string {
  const rows = given.map((row) => row.map(toPrintable));
  const widths = headers.map((header, column) =>
    Math.max(header.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  shrink(widths, columns);
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0))
      .join(gap)
      .trimEnd();
  return [headers, ...rows].map(line).join('\n');
}

const gap = '  ';
const minWidth = 6;
const cut = (cell: string, width: number) =>
  cell.length > width ? `${cell.slice(0, width - 1)}…` : cell;

function shrink(widths: number[], columns: number): void {
  const gaps = gap.length * (widths.length - 1);
  let excess = widths.reduce((sum, width) => sum + width, gaps) - columns;
  for (; excess > 0; excess--) {
    const widest = Math.max(...widths);
    if (widest <= minWidth) return;
    widths[widths.lastIndexOf(widest)] = widest - 1;
  }
}

/** On a terminal, the table fits its width. */
export const printTable = (headers: string[], rows: string[][]) =>
  console.log(renderTable(headers, rows, process.stdout.columns));

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
