// BOUNDARY. JSON Schema (draft 2020-12, and what draft 7 shares with it) as a grammar whose every text
// parses as JSON and satisfies the schema. What can't be promised throws UnsupportedSchema.

import { anyObject, compileSchema } from './compiler.ts';
import { createRules } from './rules.ts';

/** Pure, and bounded in time and size whatever the schema. Throws UnsupportedSchema. */
export function toGrammar(schema: unknown): string {
  const rules = createRules();
  return rules.render(compileSchema(rules, schema));
}

/** Any JSON object: `response_format: {type: "json_object"}`. */
export const jsonObjectGrammar: string = toObjectGrammar();

function toObjectGrammar(): string {
  const rules = createRules();
  return rules.render(anyObject(rules));
}
