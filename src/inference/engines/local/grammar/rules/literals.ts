// A choice of fixed texts. llama.cpp follows every option side by side, so a long list is written by its
// common beginnings, where only one way goes on.

import { choice, type Expression, rule, sequence, text } from './gbnf.ts';
import type { RuleBuilder } from './rule-builder.ts';

/** Up to here the list reads better as it is. */
const maxPlainLiterals = 8;

export function literalsExpression(rules: RuleBuilder, texts: readonly string[]): Expression {
  if (texts.length <= maxPlainLiterals) return choice(texts.map(text));
  return byBeginning(rules, [...new Set(texts)].toSorted(), 0);
}

/** The texts agree up to `from` and are sorted, so the first and the last agree the least. */
function byBeginning(rules: RuleBuilder, texts: readonly string[], from: number): Expression {
  const [first, last] = [texts[0]!, texts.at(-1)!];
  if (texts.length === 1) return text(first.slice(from));
  let end = from;
  while (end < first.length && first[end] === last[end]) end++;
  // Half of a surrogate pair can't be written in a grammar.
  if (end > from && /[\ud800-\udbff]/.test(first[end - 1]!)) end--;
  const groups = Map.groupBy(texts, (each) => String.fromCodePoint(each.codePointAt(end) ?? 0));
  const options = [...groups].map(([char, group]) =>
    char === '\0' ? text('') : byBeginning(rules, group, end),
  );
  return sequence(text(first.slice(from, end)), rule(rules.add('text', choice(options))));
}
