// The rules of one grammar while it is built: names, sharing, and repetition within what llama.cpp takes.

import { choice, type Expression, rule, sequence, toLines } from './gbnf.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';

const ruleLimit = 20_000;
const textLimit = 2_000_000;

/** Rules that llama.cpp makes out of `{m,n}`, over the whole grammar. */
const expansionLimit = 100_000;

// llama.cpp refuses `x{m}` above 2000 and silently reads `x{0,n}` above 2000 as unbounded.
export const chunk = 1000;

/** Above this an upper bound means nothing: no context window holds so many characters or items. */
export const repetitionLimit = chunk * chunk;

/** Roughly one unit for one step of an innermost loop. */
export type Spend = (amount: number) => void;

const workLimit = 15_000_000;

export interface Rules {
  /** Defines a rule under a new name that starts with `prefix`, and returns the name. */
  add(prefix: string, body: Expression): string;
  /** Takes a name for a rule that is defined later, so that it can refer to itself. */
  reserve(prefix: string): string;
  define(name: string, body: Expression): void;
  /** The same `key` is built once. */
  shared(key: string, prefix: string, build: () => Expression): string;
  /** The rule `item` from `min` to `max` times; `max` may be Infinity, or too small for anything. */
  repeat(item: string, min: number, max: number): Expression;
  /** Counts work that the schema causes. Throws when a grammar has cost too much. */
  readonly spend: Spend;
  /** The grammar's text. Throws when nothing finite matches `root`, or the text is too large. */
  render(root: string): string;
}

export function createRules(): Rules {
  const bodies = new Map<string, Expression>();
  const byKey = new Map<string, string>();
  let names = 0;
  let expansion = 0;
  let work = 0;

  const spend = (amount: number) => {
    work += amount;
    if (work > workLimit) throw new UnsupportedSchema('', '', 'takes too much work');
  };
  const reserve = (prefix: string) => {
    if (++names > ruleLimit) throw new UnsupportedSchema('', '', 'is too large for a grammar');
    return `${prefix}-${names}`;
  };
  const define = (name: string, body: Expression) => {
    bodies.set(name, body);
  };
  const add = (prefix: string, body: Expression) => {
    const name = reserve(prefix);
    define(name, body);
    return name;
  };
  const shared = (key: string, prefix: string, build: () => Expression) => {
    const known = byKey.get(key);
    if (known) return known;
    const name = reserve(prefix);
    byKey.set(key, name);
    define(name, build());
    return name;
  };

  const times = (name: string, min: number, max: number): Expression => {
    expansion += max === Infinity ? min : max;
    if (expansion > expansionLimit) throw new UnsupportedSchema('', '', 'repeats too much');
    return { kind: 'repeat', name, min, max };
  };
  const whole = (item: string) => shared(`whole ${item}`, 'chunk', () => times(item, chunk, chunk));
  const exactly = (item: string, count: number): Expression[] => {
    const chunks = Math.floor(count / chunk);
    const rest = count % chunk;
    return [
      ...(chunks > 0 ? [times(whole(item), chunks, chunks)] : []),
      ...(rest > 0 ? [times(item, rest, rest)] : []),
    ];
  };
  // Whole chunks first, then a part of one: two readings of the same text would double the work.
  const upTo = (item: string, count: number): Expression => {
    if (count <= chunk) return times(item, 0, count);
    const part = shared(`part ${item}`, 'part', () => times(item, 0, chunk - 1));
    const next = shared(`up to ${count - chunk} ${item}`, 'up-to', () => upTo(item, count - chunk));
    return choice([sequence(rule(whole(item)), rule(next)), rule(part)]);
  };
  const repeat = (item: string, min: number, max: number): Expression => {
    if (max < min) return choice([]);
    const name = shared(`repeat ${item} ${min} ${max}`, 'repeat', () => {
      if (max > repetitionLimit) return sequence(...exactly(item, min), times(item, 0, Infinity));
      return sequence(...exactly(item, min), ...(max > min ? [upTo(item, max - min)] : []));
    });
    return rule(name);
  };

  const render = (root: string) => {
    const lines = toLines(bodies, root);
    if (!lines) throw new UnsupportedSchema('', '', 'is met by no finite JSON value');
    const grammar = `${lines.join('\n')}\n`;
    if (grammar.length > textLimit) {
      throw new UnsupportedSchema('', '', 'is too large for a grammar');
    }
    return grammar;
  };

  return { add, reserve, define, shared, repeat, spend, render };
}
