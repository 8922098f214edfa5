// What the terminal sees: tables, JSON for programs, questions, and errors that say what to do.

import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';

/** Ends the command with its message on stderr, if it has one, and an exit code. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export function printTable(headers: string[], rows: string[][]): void {
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

export async function ask(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await terminal.question(question)).trim();
  } finally {
    terminal.close();
  }
}

/** Reads without showing what is typed; from a pipe it reads a line. */
export async function askSecret(question: string): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({
    input: process.stdin,
    output: silent,
    terminal: process.stdin.isTTY === true,
  });
  try {
    return await terminal.question('');
  } finally {
    terminal.close();
    if (process.stdin.isTTY) process.stderr.write('\n');
  }
}
