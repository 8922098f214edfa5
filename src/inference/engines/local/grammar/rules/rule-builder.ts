// The rules of one grammar while it is built: names, sharing, and repetition within the bounds of llama.cpp.

import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { createWorkBudget, type Spend } from '#inference/engines/local/grammar/work-budget.ts';
import { choice, type Expression, rule, sequence, text, toLines } from './gbnf.ts';

const maxRules = 20_000;
const maxTextLength = 2_000_000;

/** Rules that llama.cpp creates from `{m,n}`, over the whole grammar. */
const maxExpansion = 100_000;

// llama.cpp refuses `x{m}` above 2000 and silently reads `x{0,n}` above 2000 as unbounded.
export const chunk = 1000;

/** A larger upper bound is ignored: no context window holds so many characters or items. */
export const maxRepetitions = chunk * chunk;

export interface RuleBuilder {
  /** Defines a rule under a new name that starts with `prefix`, and returns the name. */
  add(prefix: string, body: Expression): string;
  /** Returns a name for a rule that is defined later, so that the rule can refer to itself. */
  reserve(prefix: string): string;
  define(name: string, body: Expression): void;
  /** Returns the name of the rule for `key`, which is built the first time. */
  shared(key: string, prefix: string, build: () => Expression): string;
  /**
   * The rule `item` repeated `min` to `max` times. `max` may be Infinity; if it is less than `min`, nothing matches.
   */
  repeat(item: string, min: number, max: number): Expression;
  readonly spend: Spend;
  /** Returns the grammar's text. Throws if nothing finite matches `root`, or the text is too large. */
  render(root: string): string;
}

export function createRuleBuilder(): RuleBuilder {
  const bodies = new Map<string, Expression>();
  const byKey = new Map<string, string>();
  let names = 0;
  const reserve = (prefix: string) => {
    if (++names > maxRules) throw new UnsupportedSchema('', '', 'is too large for a grammar');
    return `${prefix}-${names}`;
  };
  const define = (name: string, body: Expression) => {
    bodies.set(name, body);
  };
  const shared: RuleBuilder['shared'] = (key, prefix, build) => {
    const known = byKey.get(key);
    if (known) return known;
    const name = reserve(prefix);
    byKey.set(key, name);
    define(name, build());
    return name;
  };
  return {
    reserve,
    define,
    shared,
    add(prefix, body) {
      const name = reserve(prefix);
      define(name, body);
      return name;
    },
    repeat: createRepeater(shared),
    spend: createWorkBudget(),
    render: (root) => render(bodies, root),
  };
}

function createRepeater(shared: RuleBuilder['shared']): RuleBuilder['repeat'] {
  let expansion = 0;
  const times = (name: string, min: number, max: number): Expression => {
    expansion += max === Infinity ? min : max;
    if (expansion > maxExpansion) throw new UnsupportedSchema('', '', 'repeats too much');
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
  // Whole chunks come first, then part of one: two ways to read the same text would double llama.cpp's work.
  const upTo = (item: string, count: number): Expression => {
    if (count <= chunk) return times(item, 0, count);
    const part = shared(`part ${item}`, 'part', () => times(item, 0, chunk - 1));
    const next = shared(`up to ${count - chunk} ${item}`, 'up-to', () => upTo(item, count - chunk));
    return choice([sequence(rule(whole(item)), rule(next)), rule(part)]);
  };
  return (item, min, max) => {
    if (max < min) return choice([]);
    const name = shared(`repeat ${item} ${min} ${max}`, 'repeat', () => {
      if (max > maxRepetitions) return sequence(...exactly(item, min), times(item, 0, Infinity));
      return sequence(...exactly(item, min), ...(max > min ? [upTo(item, max - min)] : []));
    });
    return rule(name);
  };
}

function render(bodies: ReadonlyMap<string, Expression>, root: string): string {
  const lines = toLines(bodies, root);
  if (!lines) throw new UnsupportedSchema('', '', 'is met by no finite JSON value');
  const grammar = `${lines.join('\n')}\n`;
  if (grammar.length > maxTextLength) {
    throw new UnsupportedSchema('', '', 'is too large for a grammar');
  }
  return grammar;
}

/** Allows at most one space, where people put one. More would let a weak model write spaces for ever. */
export function spaceRule(rules: RuleBuilder): Expression {
  const space = rules.shared('space', 'space', () => text(' '));
  return rules.repeat(space, 0, 1);
}
