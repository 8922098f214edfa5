// Log lines for people: time, level, message and members on one line, and the stack of an error below it.

import { styleText } from 'node:util';
import { toPrintable } from '#lib/text/printable.ts';

const levels: Record<number, readonly [name: string, style: Parameters<typeof styleText>[0]]> = {
  10: ['TRACE', 'gray'],
  20: ['DEBUG', 'blue'],
  30: ['INFO', 'green'],
  40: ['WARN', 'yellow'],
  50: ['ERROR', 'red'],
  60: ['FATAL', 'bgRed'],
};
/** A stack of a failed recursion has thousands of lines. */
const maxStackLines = 30;

type Line = Record<string, unknown> & { err?: { message?: unknown; stack?: unknown } };

/** Formats a block of whole lines. */
export const formatLog = (block: Buffer, hasColours: boolean) =>
  Buffer.from(
    block
      .toString()
      .split('\n')
      .map((line) => formatLogLine(line, hasColours))
      .join('\n'),
  );

/** What is not a JSON object stays as it is, except for characters that could control the terminal. */
export function formatLogLine(line: string, hasColours: boolean): string {
  if (!line.startsWith('{')) return toPrintable(line);
  try {
    return format(JSON.parse(line) as Line, hasColours);
  } catch (error) {
    if (error instanceof SyntaxError) return toPrintable(line);
    throw error;
  }
}

function format({ level, time, msg, err, ...members }: Line, hasColours: boolean): string {
  const paint = (style: Parameters<typeof styleText>[0], text: string) =>
    hasColours ? styleText(style, text, { validateStream: false }) : text;
  const [name, style] = levels[Number(level)] ?? [String(level), 'white'];
  const { method, route, status, ms, ...rest } = members;
  const isRequest = msg === 'request' && typeof method === 'string';
  const what = isRequest
    ? `${method} ${route} ${status} ${Math.round(Number(ms) * 10) / 10} ms`
    : String(msg ?? '');
  const shown = Object.entries(isRequest ? rest : members);
  const parts = [
    paint('dim', toTime(time)),
    paint(style, toPrintable(name).padEnd(5)),
    toPrintable(err?.message === undefined ? what : `${what}: ${err.message}`),
    ...shown.map(([key, value]) => paint('dim', `${toPrintable(key)}=${toValue(value)}`)),
  ];
  return [parts.join(' '), ...toStack(err?.stack)].join('\n');
}

/** UTC, as everywhere. */
function toTime(time: unknown): string {
  const at = new Date(Number(time));
  const text = Number.isNaN(at.getTime()) ? '-' : at.toISOString();
  return text.replace('T', ' ').replace('Z', '');
}

function toValue(value: unknown): string {
  const isPlain = typeof value === 'string' && /^[^\s"=]+$/.test(value);
  return toPrintable(isPlain ? value : JSON.stringify(value));
}

/** The first line of a stack repeats the message. */
const toStack = (stack: unknown) =>
  typeof stack !== 'string'
    ? []
    : stack
        .split('\n')
        .filter((line) => /^\s+at /.test(line))
        .slice(0, maxStackLines)
        .map(toPrintable);
