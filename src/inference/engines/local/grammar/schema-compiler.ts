// Puts a grammar together: one rule for each distinct set of schemas, filled in from a queue, so that
// recursion in the schema is recursion in the grammar and deep schemas need no deep stack.

import { PatternError } from '#inference/engines/local/grammar/regex/regex.ts';
import {
  choice,
  type Expression,
  rule,
  sequence,
  text,
} from '#inference/engines/local/grammar/rules/gbnf.ts';
import { literalsExpression } from '#inference/engines/local/grammar/rules/literals.ts';
import { numberExpression } from '#inference/engines/local/grammar/rules/numbers.ts';
import {
  objectExpression,
  spaceRule,
} from '#inference/engines/local/grammar/rules/object-members.ts';
import type { RuleBuilder } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { stringExpression } from '#inference/engines/local/grammar/rules/strings.ts';
import { createSchemaDocument } from '#inference/engines/local/grammar/schema/document.ts';
import { createSchemaExpander } from '#inference/engines/local/grammar/schema/expansion.ts';
import { applyExclusions } from '#inference/engines/local/grammar/schema/one-of.ts';
import {
  type ArrayConstraint,
  type Conjunction,
  type TypeConstraint,
  unconstrained,
} from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { createAmbiguityCheck } from './ambiguity-check.ts';

/** llama.cpp follows them side by side; 200 of them cost it 20 ms a token. */
const maxAlternatives = 128;

/** Adds the rules for a schema, and the ones it needs; returns the name of its own. */
export function compileSchema(rules: RuleBuilder, schema: unknown, ...further: unknown[]): string {
  const { expand, conjunctionKey, constraintKey } = createSchemaExpander(
    createSchemaDocument(schema),
    rules.spend,
  );
  const names = new Map<string, string>();
  const constraintNames = new Map<string, string>();
  const queue: [name: string, conjunction: Conjunction][] = [];

  const ruleOf = (conjunction: Conjunction): string => {
    const meaningful = conjunction.filter((located) => located.schema !== true);
    if (meaningful.length === 0) return anyValue(rules);
    const key = conjunctionKey(meaningful);
    const known = names.get(key);
    if (known) return known;
    const name = rules.reserve('value');
    names.set(key, name);
    queue.push([name, meaningful]);
    return name;
  };
  const toValue = (conjunction: Conjunction) => rule(ruleOf(conjunction));

  const knowledge = { expand, spend: rules.spend };
  const ambiguity = createAmbiguityCheck(knowledge, ruleOf);

  const bodyOf = (name: string, conjunction: Conjunction): Expression => {
    const path = conjunction[0]!.path;
    const constraints = expand(conjunction);
    const meant = constraints.filter((constraint) => !constraint.implicit);
    const narrowed = (meant.length > 0 ? meant : constraints).flatMap(
      (constraint) => applyExclusions(constraint, knowledge) ?? [],
    );
    const constants = narrowed.flatMap((constraint) =>
      constraint.type === 'const' ? [JSON.stringify(constraint.value)] : [],
    );
    const others = narrowed.filter((constraint) => constraint.type !== 'const');
    if (others.length > maxAlternatives) {
      throw new UnsupportedSchema(path, '', 'has too many alternatives');
    }
    const body = choice([
      ...(constants.length > 0 ? [literalsExpression(rules, constants)] : []),
      ...others.map((constraint) => sharedExpression(constraint, path)),
    ]);
    ambiguity.add(name, path, others);
    return body;
  };

  // A format can take hundreds of rules, and is often used for many members.
  const sharedExpression = (constraint: TypeConstraint, path: string): Expression => {
    if (constraint.type !== 'string' || !constraint.automaton) {
      return constraintExpression(rules, constraint, path, toValue);
    }
    const key = constraintKey(constraint);
    const name =
      constraintNames.get(key) ?? rules.add('string', stringExpression(rules, constraint));
    constraintNames.set(key, name);
    return rule(name);
  };

  const located = [schema, ...further].map((each) => ({ schema: each, path: '' }));
  const root = ruleOf(located);
  for (let next = queue.pop(); next; next = queue.pop()) {
    const [name, conjunction] = next;
    try {
      rules.define(name, bodyOf(name, conjunction));
    } catch (error) {
      // Two patterns that are simple alone can be too much together, or with a length.
      if (!(error instanceof PatternError)) throw error;
      throw new UnsupportedSchema(conjunction[0]!.path, 'pattern', error.message);
    }
  }
  ambiguity.check();
  return root;
}

/** Any JSON value. */
export function anyValue(rules: RuleBuilder): string {
  return rules.shared('any', 'any', () =>
    choice(
      Object.values(unconstrained).map((constraint) =>
        constraintExpression(rules, constraint, '', () => rule(anyValue(rules))),
      ),
    ),
  );
}

/** Any JSON object. */
export function anyObject(rules: RuleBuilder): string {
  return rules.shared('any object', 'any-object', () =>
    constraintExpression(rules, unconstrained.object, '', () => rule(anyValue(rules))),
  );
}

function constraintExpression(
  rules: RuleBuilder,
  constraint: TypeConstraint,
  path: string,
  toValue: (conjunction: Conjunction) => Expression,
): Expression {
  switch (constraint.type) {
    case 'const':
      return text(JSON.stringify(constraint.value));
    case 'null':
      return text('null');
    case 'boolean':
      return choice([text('true'), text('false')]);
    case 'number':
      return numberExpression(rules, constraint);
    case 'string':
      return stringExpression(rules, constraint);
    case 'array':
      return arrayExpression(rules, constraint, toValue);
    case 'object':
      return objectExpression(rules, constraint, path, toValue);
  }
}

function arrayExpression(
  rules: RuleBuilder,
  constraint: ArrayConstraint,
  toValue: (conjunction: Conjunction) => Expression,
): Expression {
  const comma = sequence(text(','), spaceRule(rules));
  const fixed = constraint.prefix.length;
  const more = rules.add('item', sequence(comma, toValue(constraint.items)));
  const close = text(']');
  // Built from the end: what may follow `at` items of the prefix.
  let rest = sequence(
    rules.repeat(more, Math.max(constraint.min - fixed, 0), constraint.max - fixed),
    close,
  );
  if (fixed === 0) {
    if (constraint.max === 0) return text('[]');
    const least = Math.max(constraint.min - 1, 0);
    const full = sequence(
      toValue(constraint.items),
      rules.repeat(more, least, constraint.max - 1),
      close,
    );
    return sequence(text('['), choice(constraint.min > 0 ? [full] : [full, close]));
  }
  for (let at = fixed - 1; at >= 0; at--) {
    const options: Expression[] = [];
    const item = toValue(constraint.prefix[at]!);
    if (at < constraint.max) options.push(sequence(...(at > 0 ? [comma] : []), item, rest));
    if (at >= constraint.min) options.push(close);
    rest = rule(rules.add('items', choice(options)));
  }
  return sequence(text('['), rest);
}
