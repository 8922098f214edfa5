// Compiles a grammar request to GBNF. It runs in the grammar thread, because a large request takes over a second.

import { toClientGrammar } from '#inference/engines/local/grammar/client-grammar.ts';
import { compilePattern } from '#inference/engines/local/grammar/regex/pattern.ts';
import { PatternError } from '#inference/engines/local/grammar/regex/regex.ts';
import { literalsExpression } from '#inference/engines/local/grammar/rules/literals.ts';
import { createRuleBuilder } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { asText, automatonExpression } from '#inference/engines/local/grammar/rules/strings.ts';
import { jsonObjectGrammar, toGrammar } from '#inference/engines/local/grammar/schema-compiler.ts';
import type { CompiledGrammar, GrammarRequest } from './grammar-compiler.ts';
import { toToolGrammar } from './tool-grammar.ts';

/** Never throws: a schema that can't be expressed returns a refusal. */
export function compileGrammar(request: GrammarRequest): CompiledGrammar {
  try {
    return { grammar: toText(request) };
  } catch (error) {
    return { refusal: (error as Error).message };
  }
}

function toText(request: GrammarRequest): string {
  switch (request.kind) {
    case 'json_object':
      return jsonObjectGrammar;
    case 'json_schema':
      return toGrammar(request.schema);
    case 'regex':
      return toRegexGrammar(request.value);
    case 'choice':
      return toChoiceGrammar(request.value);
    case 'grammar':
      return toClientGrammar(request.value);
    case 'tool_calls':
      return toToolGrammar(request.tools, { parallel: request.parallel });
  }
}

/** Throws an Error whose message says why the pattern can't be used. */
function toRegexGrammar(pattern: string): string {
  const rules = createRuleBuilder();
  try {
    const automaton = compilePattern(toStrictEscapes(pattern), rules.spend, true);
    return rules.render(rules.add('text', automatonExpression(rules, automaton, asText)));
  } catch (error) {
    throw error instanceof PatternError ? new Error(`the pattern ${error.message}`) : error;
  }
}

/** Python and Rust allow a backslash before any punctuation; ECMAScript's `u` flag does not. */
const toStrictEscapes = (pattern: string) =>
  pattern.replaceAll(/\\([\s\S])/g, (escaped, char: string) =>
    /[ !"#%&',:;<=>@_`~-]/.test(char)
      ? `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`
      : escaped,
  );

function toChoiceGrammar(texts: readonly string[]): string {
  if (texts.some((text) => text.includes('\0') || !text.isWellFormed()))
    throw new Error('a text has a character that no model can write');
  const rules = createRuleBuilder();
  return rules.render(rules.add('choice', literalsExpression(rules, texts)));
}
