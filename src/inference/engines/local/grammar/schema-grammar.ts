// BOUNDARY. JSON Schema (draft 2020-12, and what draft 7 shares with it) as a grammar for llama.cpp whose
// every text parses as JSON and satisfies the schema. What can't be promised is refused by name.

import { createRuleBuilder } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { anyObject, compileSchema } from './schema-compiler.ts';

/**
 * Pure, and bounded in time and size whatever the schema. Throws UnsupportedSchema.
 *
 * Members come in the schema's order. Without `additionalProperties` a schema that lists its members gets
 * just those; with it, extra ones follow under other names. Two extra ones may share a name: a parser keeps
 * the last, which is valid by itself, and only one is counted towards `minProperties`.
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
