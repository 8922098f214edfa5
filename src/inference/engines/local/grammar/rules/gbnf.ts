// Grammars as data, and their text in llama.cpp's GBNF. Rules that can never end are left out here, so
// that whoever builds a grammar need not know whether a recursion has a way out.

export type Range = readonly [first: number, last: number];

export type Expression =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'class'; readonly ranges: readonly Range[] }
  | { readonly kind: 'rule'; readonly name: string }
  | { readonly kind: 'sequence'; readonly items: readonly Expression[] }
  | { readonly kind: 'choice'; readonly options: readonly Expression[] }
  | { readonly kind: 'repeat'; readonly name: string; readonly min: number; readonly max: number };

export const text = (value: string): Expression => ({ kind: 'text', text: value });
export const rule = (name: string): Expression => ({ kind: 'rule', name });
export const charClass = (ranges: readonly Range[]): Expression => ({ kind: 'class', ranges });

export function sequence(...items: Expression[]): Expression {
  return items.length === 1 ? items[0]! : { kind: 'sequence', items };
}

/** No options at all is the expression that nothing matches. */
export function choice(options: readonly Expression[]): Expression {
  return options.length === 1 ? options[0]! : { kind: 'choice', options };
}

/** One line per rule that `root` needs; undefined when nothing finite matches `root`. */
export function toLines(
  bodies: ReadonlyMap<string, Expression>,
  root: string,
): string[] | undefined {
  const alive = findProductive(bodies);
  if (!alive.has(root)) return undefined;
  const names = new Set([root]);
  const lines = [`root ::= ${root}`];
  for (const name of names) {
    const body = prune(bodies.get(name)!, alive)!;
    for (const mentioned of mentions(body)) names.add(mentioned);
    lines.push(`${name} ::= ${write(body, false)}`);
  }
  return lines;
}

function findProductive(bodies: ReadonlyMap<string, Expression>): Set<string> {
  const alive = new Set<string>();
  const users = new Map<string, string[]>();
  for (const [name, body] of bodies) {
    for (const mentioned of mentions(body)) {
      const list = users.get(mentioned);
      if (list) list.push(name);
      else users.set(mentioned, [name]);
    }
  }
  const queue = [...bodies.keys()];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (alive.has(name) || !prune(bodies.get(name)!, alive)) continue;
    alive.add(name);
    queue.push(...(users.get(name) ?? []));
  }
  return alive;
}

/** The expression without the options that can never end; undefined when none is left. */
function prune(expression: Expression, alive: ReadonlySet<string>): Expression | undefined {
  switch (expression.kind) {
    case 'text':
      return expression;
    case 'class':
      return expression.ranges.length > 0 ? expression : undefined;
    case 'rule':
      return alive.has(expression.name) ? expression : undefined;
    case 'repeat':
      if (alive.has(expression.name)) return expression;
      return expression.min === 0 ? text('') : undefined;
    case 'sequence': {
      const items = expression.items.map((item) => prune(item, alive));
      return items.every((item) => item !== undefined) ? sequence(...items) : undefined;
    }
    case 'choice': {
      const options = expression.options.flatMap((option) => prune(option, alive) ?? []);
      return options.length > 0 ? choice(options) : undefined;
    }
  }
}

function mentions(expression: Expression): string[] {
  switch (expression.kind) {
    case 'rule':
    case 'repeat':
      return [expression.name];
    case 'sequence':
      return expression.items.flatMap(mentions);
    case 'choice':
      return expression.options.flatMap(mentions);
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

function writeRange([first, last]: Range): string {
  if (first === last) return writeChar(first);
  return `${writeChar(first)}-${writeChar(last)}`;
}

/** Letters and digits as they are; all else by number, so that no character can mean something. */
function writeChar(codePoint: number): string {
  const char = String.fromCodePoint(codePoint);
  if (/[A-Za-z0-9 ]/.test(char)) return char;
  const hex = codePoint.toString(16).toUpperCase();
  if (codePoint <= 0xff) return `\\x${hex.padStart(2, '0')}`;
  return codePoint <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}
