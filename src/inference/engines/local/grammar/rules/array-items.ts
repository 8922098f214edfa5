// Grammar rules for arrays: the items of the prefix, then any number of the others within the bounds.

import type {
  ArrayConstraint,
  Conjunction,
} from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { choice, type Expression, rule, sequence, text } from './gbnf.ts';
import { type RuleBuilder, spaceRule } from './rule-builder.ts';

export function arrayExpression(
  rules: RuleBuilder,
  constraint: ArrayConstraint,
  toValue: (conjunction: Conjunction) => Expression,
): Expression {
  const { prefix, items, min, max } = constraint;
  const fixed = prefix.length;
  const comma = sequence(text(','), spaceRule(rules));
  const more = rules.add('item', sequence(comma, toValue(items)));
  const close = text(']');
  if (fixed === 0) {
    if (max === 0) return text('[]');
    const others = rules.repeat(more, Math.max(min - 1, 0), max - 1);
    const full = sequence(toValue(items), others, close);
    return sequence(text('['), choice(min > 0 ? [full] : [full, close]));
  }
  // Built from the end: `rest` is what may follow `at` items of the prefix.
  let rest = sequence(rules.repeat(more, Math.max(min - fixed, 0), max - fixed), close);
  for (let at = fixed - 1; at >= 0; at--) {
    const options: Expression[] = [];
    const item = toValue(prefix[at]!);
    if (at < max) options.push(sequence(...(at > 0 ? [comma] : []), item, rest));
    if (at >= min) options.push(close);
    rest = rule(rules.add('items', choice(options)));
  }
  return sequence(text('['), rest);
}
