// Grammar rules for a choice of fixed texts. llama.cpp follows all options side by side, so a long list is written as a
// prefix tree, in which only one branch continues.

import { choice, type Expression, rule, sequence, text } from './gbnf.ts';
import type { RuleBuilder } from './rule-builder.ts';

/** A list of up to this length is written as it is. */
const maxPlainLiterals = 8;

export function literalsExpression(rules: RuleBuilder, texts: readonly string[]): Expression {
  if (texts.length <= maxPlainLiterals) return choice(texts.map(text));
  return prefixTree(rules, [...new Set(texts)].toSorted(), 0);
}

/** The texts are sorted and share their first `from` characters; the first and the last text share the fewest. */
function prefixTree(rules: RuleBuilder, texts: readonly string[], from: number): Expression {
  const [first, last] = [texts[0]!, texts.at(-1)!];
  if (texts.length === 1) return text(first.slice(from));
  let end = from;
  while (end < first.length && first[end] === last[end]) end++;
  // Half of a surrogate pair can't be written in a grammar.
  if (end > from && /[\ud800-\udbff]/.test(first[end - 1]!)) end--;
  const groups = Map.groupBy(texts, (each) => String.fromCodePoint(each.codePointAt(end) ?? 0));
  const options = [...groups].map(([char, group]) =>
    char === '\0' ? text('') : prefixTree(rules, group, end),
  );
  return sequence(text(first.slice(from, end)), rule(rules.add('text', choice(options))));
}
