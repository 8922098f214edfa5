// Streams tables as CSV (RFC 4180). Texts that a spreadsheet would run as a formula are quoted with an apostrophe.

import { Readable } from 'node:stream';

type Cell = string | number | boolean | null;

/** A header line, then one line per row. The next page is read only when the last one was consumed. */
export function toCsv<Row extends object>(
  columns: readonly (keyof Row & string)[],
  pages: AsyncIterable<readonly Row[]>,
): Readable {
  async function* lines(): AsyncGenerator<string> {
    yield toLine(columns);
    for await (const rows of pages) {
      const text = rows.map((row) => toLine(columns.map((name) => row[name] as Cell))).join('');
      if (text !== '') yield text;
    }
  }
  return Readable.from(lines(), { highWaterMark: 2 });
}

const toLine = (cells: readonly Cell[]) => `${cells.map(toCell).join(',')}\r\n`;

function toCell(value: Cell): string {
  if (value === null) return '';
  if (typeof value === 'number') return toNumber(value);
  if (typeof value === 'boolean') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes a number without an exponent, and with all nine decimals of money. */
const toNumber = (value: number) =>
  Number.isInteger(value) ? String(value) : value.toFixed(9).replace(/\.?0+$/, '');
