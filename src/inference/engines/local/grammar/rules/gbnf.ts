// Grammars as data, and their text in llama.cpp's GBNF. Rules that can never end are left out of the text, so that code
// that builds a grammar need not check whether a recursion ends.

import type { CharRange } from '#inference/engines/local/grammar/regex/char-ranges.ts';

export type Expression =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'class'; readonly ranges: readonly CharRange[] }
  | { readonly kind: 'rule'; readonly name: string }
  | { readonly kind: 'sequence'; readonly items: readonly Expression[] }
  | { readonly kind: 'choice'; readonly options: readonly Expression[] }
  | { readonly kind: 'repeat'; readonly name: string; readonly min: number; readonly max: number };

export const text = (value: string): Expression => ({ kind: 'text', text: value });
export const rule = (name: string): Expression => ({ kind: 'rule', name });
export const charClass = (ranges: readonly CharRange[]): Expression => ({ kind: 'class', ranges });

export function sequence(...items: Expression[]): Expression {
  return items.length === 1 ? items[0]! : { kind: 'sequence', items };
}

/** Without options, nothing matches. */
export function choice(options: readonly Expression[]): Expression {
  return options.length === 1 ? options[0]! : { kind: 'choice', options };
}

/** One line for each rule that `root` needs; undefined if nothing finite matches `root`. */
export function toLines(
  bodies: ReadonlyMap<string, Expression>,
  root: string,
): string[] | undefined {
  const productive = findProductive(bodies);
  if (!productive.has(root)) return undefined;
  const names = new Set([root]);
  const lines = [`root ::= ${root}`];
  for (const name of names) {
    const body = prune(bodies.get(name)!, productive)!;
    for (const used of findRuleNames(body)) names.add(used);
    lines.push(`${name} ::= ${write(body, false)}`);
  }
  return lines;
}

/** The names of the rules that can end. */
function findProductive(bodies: ReadonlyMap<string, Expression>): Set<string> {
  const productive = new Set<string>();
  const users = new Map<string, string[]>();
  for (const [name, body] of bodies) {
    for (const used of findRuleNames(body)) {
      const list = users.get(used);
      if (list) list.push(name);
      else users.set(used, [name]);
    }
  }
  const queue = [...bodies.keys()];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (productive.has(name) || !prune(bodies.get(name)!, productive)) continue;
    productive.add(name);
    queue.push(...(users.get(name) ?? []));
  }
  return productive;
}

/** Removes the options that can never end. Returns undefined if none is left. */
function prune(expression: Expression, productive: ReadonlySet<string>): Expression | undefined {
  switch (expression.kind) {
    case 'text':
      return expression;
    case 'class':
      return expression.ranges.length > 0 ? expression : undefined;
    case 'rule':
      return productive.has(expression.name) ? expression : undefined;
    case 'repeat':
      if (productive.has(expression.name)) return expression;
      return expression.min === 0 ? text('') : undefined;
    case 'sequence': {
      const items = expression.items.map((item) => prune(item, productive));
      return items.every((item) => item !== undefined) ? sequence(...items) : undefined;
    }
    case 'choice': {
      const options = expression.options.flatMap((option) => prune(option, productive) ?? []);
      return options.length > 0 ? choice(options) : undefined;
    }
  }
}

function findRuleNames(expression: Expression): string[] {
  switch (expression.kind) {
    case 'rule':
    case 'repeat':
      return [expression.name];
    case 'sequence':
      return expression.items.flatMap(findRuleNames);
    case 'choice':
      return expression.options.flatMap(findRuleNames);
    default:
      return [];
  }
}

function write(expression: Expression, nested: boolean): string {
  switch (expression.kind) {
    case 'text':
      return `"${[...expression.text].map((char) => literalEscapes[char] ?? char).join('')}"`;
    case 'class':
      return `[${expression.ranges.map(writeRange).join('')}]`;
    case 'rule':
      return expression.name;
    case 'repeat':
      return `${expression.name}${writeCount(expression.min, expression.max)}`;
    case 'sequence':
      return expression.items.map((item) => write(item, true)).join(' ') || '""';
    case 'choice': {
      const options = expression.options.map((option) => write(option, false)).join(' | ');
      return nested ? `(${options})` : options;
    }
  }
}

const literalEscapes: Record<string, string> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

function writeCount(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? '*' : `{${min},}`;
  if (min === 0 && max === 1) return '?';
  return min === max ? `{${min}}` : `{${min},${max}}`;
}

function writeRange([first, last]: CharRange): string {
  if (first === last) return writeChar(first);
  return `${writeChar(first)}-${writeChar(last)}`;
}

/** Writes letters and digits as they are and all else by number, because other characters may have a meaning. */
function writeChar(codePoint: number): string {
  const char = String.fromCodePoint(codePoint);
  if (/[A-Za-z0-9 ]/.test(char)) return char;
  const hex = codePoint.toString(16).toUpperCase();
  if (codePoint <= 0xff) return `\\x${hex.padStart(2, '0')}`;
  return codePoint <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}
