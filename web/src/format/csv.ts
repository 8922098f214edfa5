// A table as CSV (RFC 4180).

type Cell = string | number | null;

export const toCsv = (rows: Cell[][]): string =>
  rows.map((cells) => `${cells.map(toCell).join(',')}\r\n`).join('');

function toCell(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return String(cell);
  // Spreadsheets would run text that starts like this as a formula.
  const text = /^[=+\-@\t]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
