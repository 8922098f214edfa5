// BOUNDARY. Turns JSON Schema (draft 2020-12, and what draft 7 shares with it) into a grammar for llama.cpp. Every text of
// the grammar is JSON that satisfies the schema. What can't be guaranteed is refused by name.

import { createRuleBuilder } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { anyObject, compileSchema } from './schema-compiler.ts';

/**
 * Pure, and bounded in time and size whatever the schema. Throws UnsupportedSchema.
 *
 * Members come in the schema's order. Without `additionalProperties`, a schema that lists its members gets only those;
 * with it, extra members follow under other names. Two extra members may share a name: a parser keeps the last, which is
 * valid on its own, and only one counts towards `minProperties`.
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
