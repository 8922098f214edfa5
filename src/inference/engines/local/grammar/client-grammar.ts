// Grammars that clients write themselves.

/** Throws: a grammar that was not compiled here could recurse or branch without end in llama.cpp. */
export function toClientGrammar(_source: string): string {
  throw new Error('models on this computer take a regex, a choice or a JSON schema instead');
}
