// What commands print: tables for people, JSON for programs, and the error that ends a command.

import { toPrintable } from '#lib/text/printable.ts';
import { nameProgram } from './program-name.ts';

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

interface TableLimits {
  /** Width of the terminal. Default: no limit. */
  readonly columns?: number | undefined;
  /** Headers of the columns that a narrow terminal leaves out, the first one first. */
  readonly spare?: readonly string[];
}

/** If the table is too wide, ids become shorter, then spare columns are left out, and then the widest cells are cut. */
export function renderTable(
  headers: string[],
  given: string[][],
  limits: TableLimits = {},
): string {
  const { columns = Infinity, spare = [] } = limits;
  const rows = given.map((row) => row.map(toPrintable));
  const all = headers.map((header, index) => toColumn(header, rows, index));
  const short = toWidth(all) > columns ? all.map(shortenIds) : all;
  const left = [...spare];
  let shown = short;
  while (toWidth(shown) > columns && left.length > 0) {
    const dropped = left.shift();
    shown = shown.filter(({ cells: [header] }) => header !== dropped);
  }
  cutWidest(shown, columns);
  const lines = Array.from({ length: rows.length + 1 }, (_, line) =>
    shown
      .map(({ cells, width }) => cut(cells[line] ?? '', width).padEnd(width))
      .join(gap)
      .trimEnd(),
  );
  const hidden = short.filter((column) => !shown.includes(column)).map(({ cells: [name] }) => name);
  if (hidden.length > 0) lines.push('', `Not shown: ${hidden.join(', ')}. See --json.`);
  return lines.join('\n');
}

/** The header and the cells below it. */
interface TableColumn {
  readonly cells: readonly string[];
  width: number;
}

const gap = '  ';
const minWidth = 6;
const id = /^[0-9a-f]{32}$/;
/** Ids of requests differ only at their end, which finds them as well. */
export const idEndLength = 12;

function toColumn(header: string, rows: readonly string[][], index: number): TableColumn {
  return withWidth([header, ...rows.map((row) => row[index] ?? '')]);
}

const withWidth = (cells: readonly string[]): TableColumn => ({
  cells,
  width: Math.max(...cells.map(({ length }) => length)),
});

const toWidth = (columns: readonly TableColumn[]) =>
  columns.reduce((sum, { width }) => sum + width, gap.length * (columns.length - 1));

/** The first characters of an id stand for all of it, if they are the only ones of their kind. */
function shortenIds(column: TableColumn): TableColumn {
  const ids = new Set(column.cells.filter((cell) => id.test(cell)));
  const isUnique = (part: (text: string) => string) =>
    new Set([...ids].map(part)).size === ids.size;
  const begin = (text: string) => text.slice(0, 8);
  const end = (text: string) => text.slice(-idEndLength);
  const part = [begin, end].find(isUnique);
  if (part === undefined) return column;
  return withWidth(column.cells.map((cell) => (id.test(cell) ? part(cell) : cell)));
}

const cut = (cell: string, width: number) =>
  cell.length > width ? `${cell.slice(0, width - 1)}…` : cell;

function cutWidest(columns: readonly TableColumn[], limit: number): void {
  for (let excess = toWidth(columns) - limit; excess > 0; excess--) {
    const widest = columns.reduce((one, other) => (other.width >= one.width ? other : one));
    if (widest.width <= minWidth) return;
    widest.width--;
  }
}

/** The header of each column and its cell for an item, in order. */
export type Columns<Item> = Readonly<Record<string, (item: Item, index: number) => string>>;

/**
 * On a terminal, the table fits its width. `things` names the rows in the sentence that is printed
 * if there are none.
 */
export function toTable<Item>(
  things: string,
  items: readonly Item[],
  columns: Columns<Item>,
  spare: readonly string[] = [],
): string {
  if (items.length === 0) return `There are no ${things}.`;
  const rows = items.map((item, index) => Object.values(columns).map((cell) => cell(item, index)));
  return renderTable(Object.keys(columns), rows, { columns: process.stdout.columns, spare });
}

/** One fact per line, with the values below each other. A fact that is unknown or empty is shown as "-". */
export function toFacts(facts: readonly (readonly [string, string | null | undefined])[]): string {
  const width = Math.max(...facts.map(([name]) => name.length)) + 2;
  return facts
    .map(([name, value]) => `${name.padEnd(width)}${toPrintable(value || '-')}`)
    .join('\n');
}

/** Breaks a text between words, so that its lines fit beside an indent. Without a terminal it stays on one line. */
export function wrapText(text: string, indent: number, columns = process.stdout.columns): string {
  const width = (columns ?? Infinity) - indent;
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    const isFull = last === undefined || last.length + 1 + word.length > Math.max(width, 20);
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}

/**
 * Prints what a command did: a sentence for people, with commands that can be pasted. With --json,
 * prints what the server returned.
 */
export function report(data: unknown, text: string, json: true | undefined): void {
  if (json) printJson(data);
  else printText(nameProgram(text));
}

export const printJson = (value: unknown) => console.log(JSON.stringify(value, null, 2));
