// BOUNDARY. Compiles what a request demands of its output to a grammar. Compiling may take seconds, so it is
// asynchronous and can be cancelled.

import type { Call } from '#inference/engine.ts';

export type GrammarRequest =
  | { readonly kind: 'json_object' }
  | { readonly kind: 'json_schema'; readonly schema: unknown }
  /** The whole output matches the pattern. */
  | { readonly kind: 'regex'; readonly value: string }
  /** The output is one of the texts. */
  | { readonly kind: 'choice'; readonly value: readonly string[] }
  /** A client's GBNF. */
  | { readonly kind: 'grammar'; readonly value: string }
  /**
   * What a model writes to call one of the tools: `<tool_call>{"name": ..., "arguments": ...}</tool_call>`,
   * tags included. With `parallel`, several calls on lines of their own.
   */
  | {
      readonly kind: 'tool_calls';
      readonly tools: readonly { name: string; parameters: unknown }[];
      readonly parallel: boolean;
    };

/** GBNF, or why it can't be expressed: `'properties.a.not' is not supported`, `the pattern is too complex`. */
export type CompiledGrammar = { readonly grammar: string } | { readonly refusal: string };

export type GrammarCaller = Pick<Call, 'caller' | 'priority' | 'signal'>;

export interface GrammarCompiler {
  /** Throws EngineError `overloaded` if too many requests wait, and the signal's reason when that aborts. */
  compile(request: GrammarRequest, caller: GrammarCaller): Promise<CompiledGrammar>;
}
