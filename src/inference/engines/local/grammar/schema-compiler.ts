// BOUNDARY. Turns JSON Schema (draft 2020-12, and what draft 7 shares with it) into a grammar for
// llama.cpp. Every text of the grammar is JSON that satisfies the schema. What can't be guaranteed
// is refused by name. There is one rule for each distinct set of schemas, filled in from a queue,
// so that a recursive schema becomes a recursive grammar and a deep schema needs no deep stack.

import { PatternError } from '#inference/engines/local/grammar/regex/regex.ts';
import { arrayExpression } from '#inference/engines/local/grammar/rules/array-items.ts';
import {
  choice,
  type Expression,
  rule,
  text,
} from '#inference/engines/local/grammar/rules/gbnf.ts';
import { literalsExpression } from '#inference/engines/local/grammar/rules/literals.ts';
import { numberExpression } from '#inference/engines/local/grammar/rules/numbers.ts';
import { objectExpression } from '#inference/engines/local/grammar/rules/object-members.ts';
import {
  createRuleBuilder,
  type RuleBuilder,
} from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { stringExpression } from '#inference/engines/local/grammar/rules/strings.ts';
import { createSchemaDocument } from '#inference/engines/local/grammar/schema/document.ts';
import {
  createSchemaExpander,
  type SchemaExpander,
} from '#inference/engines/local/grammar/schema/expansion.ts';
import { applyExclusions } from '#inference/engines/local/grammar/schema/one-of.ts';
import {
  type Conjunction,
  type TypeConstraint,
  unconstrained,
} from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { type AmbiguityCheck, createAmbiguityCheck } from './ambiguity-check.ts';

/** llama.cpp follows all alternatives side by side. 200 of them cost it 20 ms per token. */
const maxAlternatives = 128;

interface Compilation {
  readonly rules: RuleBuilder;
  readonly expander: SchemaExpander;
  readonly ambiguity: AmbiguityCheck;
  /** The rule of each set of schemas, by its cache key. */
  readonly names: Map<string, string>;
  /** The rule of each string with a pattern, by its cache key. */
  readonly stringNames: Map<string, string>;
  /** Rules that are named but not defined. */
  readonly queue: [name: string, conjunction: Conjunction][];
}

/**
 * Adds the rules for a schema that all of `further` must hold with, and the rules that these need. Returns the name of
 * the schema's rule.
 */
export function compileSchema(rules: RuleBuilder, schema: unknown, ...further: unknown[]): string {
  const expander = createSchemaExpander(createSchemaDocument(schema), rules.spend);
  const compilation: Compilation = {
    rules,
    expander,
    ambiguity: createAmbiguityCheck({ expand: expander.expand, spend: rules.spend }, (value) =>
      ruleOf(compilation, value),
    ),
    names: new Map(),
    stringNames: new Map(),
    queue: [],
  };
  const { queue } = compilation;
  const located = [schema, ...further].map((each) => ({ schema: each, path: '' }));
  const root = ruleOf(compilation, located);
  for (let next = queue.pop(); next; next = queue.pop()) {
    const [name, conjunction] = next;
    try {
      rules.define(name, toBody(compilation, name, conjunction));
    } catch (error) {
      // Two patterns that are simple on their own can be too complex together, or with a length.
      if (!(error instanceof PatternError)) throw error;
      throw new UnsupportedSchema(conjunction[0]!.path, 'pattern', error.message);
    }
  }
  compilation.ambiguity.check();
  return root;
}

/** The name of the rule for these schemas, which is queued to be defined the first time. */
function ruleOf({ rules, expander, names, queue }: Compilation, conjunction: Conjunction): string {
  const meaningful = conjunction.filter((located) => located.schema !== true);
  if (meaningful.length === 0) return anyValue(rules);
  const key = expander.conjunctionKey(meaningful);
  const known = names.get(key);
  if (known) return known;
  const name = rules.reserve('value');
  names.set(key, name);
  queue.push([name, meaningful]);
  return name;
}

function toBody(compilation: Compilation, name: string, conjunction: Conjunction): Expression {
  const { rules, expander, ambiguity } = compilation;
  const path = conjunction[0]!.path;
  const constraints = expander.expand(conjunction);
  const explicit = constraints.filter((constraint) => !constraint.implicit);
  const matching = { expand: expander.expand, spend: rules.spend };
  const narrowed = (explicit.length > 0 ? explicit : constraints).flatMap(
    (constraint) => applyExclusions(constraint, matching) ?? [],
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
    ...others.map((constraint) => toExpression(compilation, constraint, path)),
  ]);
  ambiguity.add(name, path, others);
  return body;
}

/** Strings with a pattern share a rule: a format can take hundreds of rules and is often used for many members. */
function toExpression(
  compilation: Compilation,
  constraint: TypeConstraint,
  path: string,
): Expression {
  const { rules, expander, stringNames } = compilation;
  if (constraint.type !== 'string' || !constraint.automaton) {
    return constraintExpression(rules, constraint, path, (value) =>
      rule(ruleOf(compilation, value)),
    );
  }
  const key = expander.constraintKey(constraint);
  const name = stringNames.get(key) ?? rules.add('string', stringExpression(rules, constraint));
  stringNames.set(key, name);
  return rule(name);
}

/** Any JSON value. */
function anyValue(rules: RuleBuilder): string {
  return rules.shared('any', 'any', () =>
    choice(
      Object.values(unconstrained).map((constraint) =>
        constraintExpression(rules, constraint, '', () => rule(anyValue(rules))),
      ),
    ),
  );
}

/** Any JSON object. */
function anyObject(rules: RuleBuilder): string {
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

/**
 * Pure, and bounded in time and size whatever the schema. Throws UnsupportedSchema.
 *
 * Members come in the schema's order. Without `additionalProperties`, a schema that lists its
 * members gets only those; with it, extra members follow under other names. Two extra members may
 * share a name: a parser keeps the last, which is valid on its own, and only one counts towards
 * `minProperties`.
 */
export function toGrammar(schema: unknown): string {
  const rules = createRuleBuilder();
  return rules.render(compileSchema(rules, schema));
}

/** Any JSON object: `response_format: {type: "json_object"}`. */
export const jsonObjectGrammar: string = toObjectGrammar();

function toObjectGrammar(): string {
  const rules = createRuleBuilder();
  return rules.render(anyObject(rules));
}
