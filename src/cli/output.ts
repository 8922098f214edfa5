// What commands print: tables for people, JSON for programs, and the error that ends a command.

import { toPrintable } from '#lib/printable.ts';

/** Ends the command: prints the message, unless it is empty, to stderr and exits with the code. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

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
export const toTable = (headers: string[], rows: string[][]) =>
  renderTable(headers, rows, process.stdout.columns);

/** Prints what a command did: a sentence for people, or with --json what the server returned. */
export function report(data: unknown, text: string, json: true | undefined): void {
  if (json) printJson(data);
  else printText(text);
}

export const printJson = (value: unknown) => console.log(JSON.stringify(value, null, 2));
