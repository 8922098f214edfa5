// Compiles a grammar request to GBNF. It runs in the grammar thread, because a large request takes over a second.

import { toClientGrammar } from './client-grammar.ts';
import type { CompiledGrammar, GrammarRequest } from './grammar-compiler.ts';
import { jsonObjectGrammar, toGrammar } from './schema-compiler.ts';
import { toChoiceGrammar, toRegexGrammar } from './text-grammar.ts';
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
