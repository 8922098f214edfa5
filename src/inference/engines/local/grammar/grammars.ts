// The grammars an engine asks for, as one object.

import type { Grammars } from '#inference/engines/local/parent/grammar-choice.ts';
import { jsonObjectGrammar, toGrammar } from './schema-grammar.ts';
import { toToolGrammar } from './tool-grammar.ts';

export const grammars: Grammars = {
  jsonObject: () => jsonObjectGrammar,
  jsonSchema: toGrammar,
  toolCalls: toToolGrammar,
};
