// Grammar rules for JSON strings, and for the strings of an automaton. An escape counts as one character and
// surrogates never appear, so bounds on the length hold in code points.

import { type Automaton, limitLength } from '#inference/engines/local/grammar/regex/automaton.ts';
import {
  type CharRange,
  intersectRanges,
} from '#inference/engines/local/grammar/regex/char-ranges.ts';
import type { StringConstraint } from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { charClass, choice, type Expression, rule, sequence, text } from './gbnf.ts';
import type { RuleBuilder } from './rule-builder.ts';

/** Characters written as themselves: no quote, backslash, control character or surrogate. */
const plain: readonly CharRange[] = [
  [0x20, 0x21],
  [0x23, 0x5b],
  [0x5d, 0x7e],
  [0xa0, 0xd7ff],
  [0xe000, 0x10ffff],
];

const shortEscapes: readonly (readonly [codePoint: number, letter: string])[] = [
  [0x22, '"'],
  [0x5c, '\\'],
  [0x08, 'b'],
  [0x0c, 'f'],
  [0x0a, 'n'],
  [0x0d, 'r'],
  [0x09, 't'],
];

export function stringExpression(rules: RuleBuilder, constraint: StringConstraint): Expression {
  if (!constraint.automaton) {
    const inner = rules.repeat(charRule(rules), constraint.min, constraint.max);
    return sequence(text('"'), inner, text('"'));
  }
  const limited = limitLength(constraint.automaton, constraint.min, constraint.max, rules.spend);
  return sequence(text('"'), automatonExpression(rules, limited, inJson));
}

/** Any character of a string, also as an escape of the Basic Multilingual Plane. */
function charRule(rules: RuleBuilder): string {
  return rules.shared('char', 'char', () => {
    const hex = charClass([
      [0x30, 0x39],
      [0x41, 0x46],
      [0x61, 0x66],
    ]);
    const notD = charClass([
      [0x30, 0x39],
      [0x41, 0x43],
      [0x45, 0x46],
      [0x61, 0x63],
      [0x65, 0x66],
    ]);
    const d = charClass([
      [0x44, 0x44],
      [0x64, 0x64],
    ]);
    const unicode = rules.add(
      'unicode',
      choice([sequence(notD, hex, hex, hex), sequence(d, charClass([[0x30, 0x37]]), hex, hex)]),
    );
    const short = charClass(
      [...'"\\/bfnrt'].map((char) => [char.charCodeAt(0), char.charCodeAt(0)]),
    );
    const escapes = rules.add('escape', choice([short, sequence(text('u'), rule(unicode))]));
    return choice([charClass(plain), sequence(text('\\'), rule(escapes))]);
  });
}

/** How an automaton's characters are written, and what comes after the last one. */
export interface AutomatonForm {
  toExpressions(ranges: readonly CharRange[]): Expression[];
  readonly end: Expression;
}

/** The rest of a JSON string after its opening quote, with the closing quote. */
export const inJson: AutomatonForm = { toExpressions: toJson, end: text('"') };

/** The text itself. */
export const asText: AutomatonForm = {
  toExpressions(ranges) {
    const writable = intersectRanges(ranges, scalars);
    return writable.length > 0 ? [charClass(writable)] : [];
  },
  end: text(''),
};

/** Characters that a grammar can name: llama.cpp ends its texts at NUL, and UTF-8 has no surrogates. */
export const scalars: readonly CharRange[] = [
  [0x1, 0xd7ff],
  [0xe000, 0x10ffff],
];

export function automatonExpression(
  rules: RuleBuilder,
  automaton: Automaton,
  { toExpressions, end }: AutomatonForm,
): Expression {
  const names = automaton.map(() => rules.reserve('string'));
  for (const [index, { accepting, edges }] of automaton.entries()) {
    const options = edges.flatMap(({ ranges, to }) =>
      toExpressions(ranges).map((char) => sequence(char, rule(names[to]!))),
    );
    rules.define(names[index]!, choice(accepting ? [...options, end] : options));
  }
  return rule(names[0]!);
}

/** Writes the characters of a set as JSON does: as themselves, or after a backslash. */
function toJson(ranges: readonly CharRange[]): Expression[] {
  const direct = intersectRanges(ranges, plain);
  const letters = shortEscapes.flatMap(([codePoint, letter]): CharRange[] =>
    ranges.some(([first, last]) => first <= codePoint && codePoint <= last)
      ? [[letter.charCodeAt(0), letter.charCodeAt(0)]]
      : [],
  );
  return [
    ...(direct.length > 0 ? [charClass(direct)] : []),
    ...(letters.length > 0 ? [sequence(text('\\'), charClass(letters))] : []),
  ];
}
