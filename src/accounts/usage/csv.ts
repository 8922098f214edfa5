// Tables as CSV (RFC 4180), in pieces, for spreadsheets that take some texts for formulas.

import { Readable } from 'node:stream';

type Cell = string | number | boolean | null;

/** One line of names, then the rows' values under them. Reads on only when what it gave was taken. */
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

/** No exponents, and every digit that money has. */
const toNumber = (value: number) =>
  Number.isInteger(value) ? String(value) : value.toFixed(9).replace(/\.?0+$/, '');
