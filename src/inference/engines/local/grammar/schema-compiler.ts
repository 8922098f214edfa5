// Puts a grammar together: one rule for each distinct set of schemas, filled in from a queue, so that
// recursion in the schema is recursion in the grammar and deep schemas need no deep stack.

import { PatternError } from '#inference/engines/local/grammar/regex/regex.ts';
import { createDefinitions } from '#inference/engines/local/grammar/schema/document.ts';
import { applyExclusions } from '#inference/engines/local/grammar/schema/one-of.ts';
import { createExpander } from '#inference/engines/local/grammar/schema/expansion.ts';
import { choice, type Expression, rule, sequence, text } from '#inference/engines/local/grammar/rules/gbnf.ts';
import { numberExpression } from '#inference/engines/local/grammar/rules/numbers.ts';
import { objectExpression, spaceRule } from '#inference/engines/local/grammar/rules/object-members.ts';
import { createRaces } from './ambiguity-check.ts';
import type { Rules } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { type ArrayShape, anyShapes, type Conjunction, type Shape } from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { stringExpression } from '#inference/engines/local/grammar/rules/strings.ts';
import { textsExpression } from '#inference/engines/local/grammar/rules/literals.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';

/** llama.cpp follows them side by side; 200 of them cost it 20 ms a token. */
const alternativeLimit = 128;

/** Adds the rules for a schema, and the ones it needs; returns the name of its own. */
export function compileSchema(rules: Rules, schema: unknown, ...further: unknown[]): string {
  const { expand, keyOf, shapeKey } = createExpander(createDefinitions(schema), rules.spend);
  const names = new Map<string, string>();
  const shapeNames = new Map<string, string>();
  const queue: [name: string, conjunction: Conjunction][] = [];

  const ruleOf = (conjunction: Conjunction): string => {
    const meaningful = conjunction.filter((located) => located.schema !== true);
    if (meaningful.length === 0) return anyValue(rules);
    const key = keyOf(meaningful);
    const known = names.get(key);
    if (known) return known;
    const name = rules.reserve('value');
    names.set(key, name);
    queue.push([name, meaningful]);
    return name;
  };
  const toValue = (conjunction: Conjunction) => rule(ruleOf(conjunction));

  const knowledge = { expand, spend: rules.spend };
  const races = createRaces(knowledge, ruleOf);

  const bodyOf = (name: string, conjunction: Conjunction): Expression => {
    const path = conjunction[0]!.path;
    const shapes = expand(conjunction);
    const meant = shapes.filter((shape) => !shape.implicit);
    const narrowed = (meant.length > 0 ? meant : shapes).flatMap(
      (shape) => applyExclusions(shape, knowledge) ?? [],
    );
    const constants = narrowed.flatMap((shape) =>
      shape.type === 'const' ? [JSON.stringify(shape.value)] : [],
    );
    const others = narrowed.filter((shape) => shape.type !== 'const');
    if (others.length > alternativeLimit) {
      throw new UnsupportedSchema(path, '', 'has too many alternatives');
    }
    const body = choice([
      ...(constants.length > 0 ? [textsExpression(rules, constants)] : []),
      ...others.map((shape) => sharedExpression(shape, path)),
    ]);
    races.add(name, path, others);
    return body;
  };

  // A format can take hundreds of rules, and is often used for many members.
  const sharedExpression = (shape: Shape, path: string): Expression => {
    if (shape.type !== 'string' || !shape.automaton) {
      return shapeExpression(rules, shape, path, toValue);
    }
    const key = shapeKey(shape);
    const name = shapeNames.get(key) ?? rules.add('string', stringExpression(rules, shape));
    shapeNames.set(key, name);
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
  races.check();
  return root;
}

/** Any JSON value. */
export function anyValue(rules: Rules): string {
  return rules.shared('any', 'any', () =>
    choice(
      Object.values(anyShapes).map((shape) =>
        shapeExpression(rules, shape, '', () => rule(anyValue(rules))),
      ),
    ),
  );
}

/** Any JSON object. */
export function anyObject(rules: Rules): string {
  return rules.shared('any object', 'any-object', () =>
    shapeExpression(rules, anyShapes.object, '', () => rule(anyValue(rules))),
  );
}

function shapeExpression(
  rules: Rules,
  shape: Shape,
  path: string,
  toValue: (conjunction: Conjunction) => Expression,
): Expression {
  switch (shape.type) {
    case 'const':
      return text(JSON.stringify(shape.value));
    case 'null':
      return text('null');
    case 'boolean':
      return choice([text('true'), text('false')]);
    case 'number':
      return numberExpression(rules, shape);
    case 'string':
      return stringExpression(rules, shape);
    case 'array':
      return arrayExpression(rules, shape, toValue);
    case 'object':
      return objectExpression(rules, shape, path, toValue);
  }
}

function arrayExpression(
  rules: Rules,
  shape: ArrayShape,
  toValue: (conjunction: Conjunction) => Expression,
): Expression {
  const comma = sequence(text(','), spaceRule(rules));
  const fixed = shape.prefix.length;
  const more = rules.add('item', sequence(comma, toValue(shape.items)));
  const close = text(']');
  // Built from the end: what may follow `at` items of the prefix.
  let rest = sequence(rules.repeat(more, Math.max(shape.min - fixed, 0), shape.max - fixed), close);
  if (fixed === 0) {
    if (shape.max === 0) return text('[]');
    const least = Math.max(shape.min - 1, 0);
    const full = sequence(toValue(shape.items), rules.repeat(more, least, shape.max - 1), close);
    return sequence(text('['), choice(shape.min > 0 ? [full] : [full, close]));
  }
  for (let at = fixed - 1; at >= 0; at--) {
    const options: Expression[] = [];
    const item = toValue(shape.prefix[at]!);
    if (at < shape.max) options.push(sequence(...(at > 0 ? [comma] : []), item, rest));
    if (at >= shape.min) options.push(close);
    rest = rule(rules.add('items', choice(options)));
  }
  return sequence(text('['), rest);
}
