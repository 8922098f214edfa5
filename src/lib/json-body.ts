// A body as JSON, from bytes that anybody may have sent.

import { isUtf8 } from 'node:buffer';
import { invalidJson } from './errors.ts';

/** Deeper than any real request, and shallow enough for every recursive function downstream. */
const maxDepth = 128;

/** Under this, the outermost object has its integers that are too long for a number, as they were written. */
export const written: unique symbol = Symbol('written');

export interface Written {
  [written]?: Record<string, string>;
}

/** Throws a Refusal. */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) throw invalidJson('it is empty');
  if (!isUtf8(bytes)) throw invalidJson('it is not UTF-8');
  const text = bytes.toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // V8's message quotes the body, which may be a prompt or a secret.
    throw invalidJson('it could not be parsed');
  }
  if (isDeeperThan(value, maxDepth))
    throw invalidJson(`it is nested deeper than ${maxDepth} levels`);
  keepLong(value, text);
  return value;
}

/** TypeScript does not know yet that a reviver is told how a number was written. */
const parseWith = JSON.parse as (
  text: string,
  reviver: (name: string, value: unknown, context: { source?: string }) => unknown,
) => unknown;

/** The same digits as JSON: it does not know this one either. */
export const { rawJSON } = JSON as unknown as { rawJSON(text: string): object };

const isLong = (value: unknown) => Number.isInteger(value) && !Number.isSafeInteger(value);

function keepLong(value: unknown, text: string): void {
  const members = value as Record<string, unknown> & Written;
  const names: string[] = [];
  for (const name in members) if (isLong(members[name])) names.push(name);
  if (names.length === 0) return;
  const sources = parseWith(text, (_, each, { source }) => (isLong(each) ? source : each));
  const digits = sources as Record<string, string>;
  members[written] = Object.fromEntries(names.map((name) => [name, digits[name] as string]));
}

/** Goes no deeper itself than the limit, so that hostile nesting costs no stack. */
function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (const member of value) if (isDeeperThan(member, levels - 1)) return true;
    return false;
  }
  for (const name in value) {
    if (isDeeperThan((value as Record<string, unknown>)[name], levels - 1)) return true;
  }
  return false;
}
