// JSON strings: the characters they may hold, and automata written as rules. A character that needs an
// escape counts as one, and surrogates never appear, so lengths in code points hold.

import { type Automaton, limitLength } from '#inference/engines/local/grammar/regex/automaton.ts';
import { intersectRanges } from '#inference/engines/local/grammar/regex/char-ranges.ts';
import { charClass, choice, type Expression, type Range, rule, sequence, text } from './gbnf.ts';
import type { Rules } from './rule-builder.ts';
import type { StringShape } from '#inference/engines/local/grammar/schema/type-constraints.ts';

/** Written as themselves: no quote, backslash, control character or surrogate. */
const plain: readonly Range[] = [
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

export function stringExpression(rules: Rules, shape: StringShape): Expression {
  if (!shape.automaton) {
    const inner = rules.repeat(charRule(rules), shape.min, shape.max);
    return sequence(text('"'), inner, text('"'));
  }
  const limited = limitLength(shape.automaton, shape.min, shape.max, rules.spend);
  return sequence(text('"'), automatonExpression(rules, limited));
}

/** Any one character of a string, also as an escape of the Basic Multilingual Plane. */
export function charRule(rules: Rules): string {
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

/** The rest of a string after its opening quote, with the closing one. */
export function automatonExpression(rules: Rules, automaton: Automaton): Expression {
  const names = automaton.map(() => rules.reserve('string'));
  for (const [index, { accepting, edges }] of automaton.entries()) {
    const options = edges.flatMap(({ ranges, to }) =>
      toJson(ranges).map((char) => sequence(char, rule(names[to]!))),
    );
    rules.define(names[index]!, choice(accepting ? [...options, text('"')] : options));
  }
  return rule(names[0]!);
}

/** How the characters of a set are written in JSON: as themselves, or after a backslash. */
function toJson(ranges: readonly Range[]): Expression[] {
  const direct = intersectRanges(ranges, plain);
  const letters = shortEscapes.flatMap(([codePoint, letter]): Range[] =>
    ranges.some(([first, last]) => first <= codePoint && codePoint <= last)
      ? [[letter.charCodeAt(0), letter.charCodeAt(0)]]
      : [],
  );
  return [
    ...(direct.length > 0 ? [charClass(direct)] : []),
    ...(letters.length > 0 ? [sequence(text('\\'), charClass(letters))] : []),
  ];
}
