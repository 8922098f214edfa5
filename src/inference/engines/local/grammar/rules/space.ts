// The white space of generated JSON.

import { type Expression, text } from './gbnf.ts';
import type { RuleBuilder } from './rule-builder.ts';

/** Allows at most one space, where people put one. More would let a weak model write spaces for ever. */
export function spaceRule(rules: RuleBuilder): Expression {
  const space = rules.shared('space', 'space', () => text(' '));
  return rules.repeat(space, 0, 1);
}
