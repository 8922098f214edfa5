// Answers questions about tokens: how many a prompt has, which ones, and what text tokens stand for.

import { withSpecial } from '#inference/engines/local/child/pooling/pooled-texts.ts';
import { toChatPrompt } from '#inference/engines/local/child/prompt/chat-template.ts';
import { countPromptTokens, toChatTokens } from '#inference/engines/local/child/prompt/prompts.ts';
import type { Answer, Question } from '#inference/engines/local/protocol.ts';
import type { TokenizeTask, Tokens } from '#inference/pooling.ts';
import { unknownToken } from './errors.ts';
import type { ModelRuntime } from './runtime.ts';

/** Throws EngineError `rejected`. */
export async function answer(runtime: ModelRuntime, question: Question): Promise<Answer> {
  if (question.kind === 'count') return countPromptTokens(runtime, question.task);
  if (question.kind === 'tokenize') return tokenize(runtime, question.task);
  return detokenize(runtime, question.tokens);
}

async function tokenize(runtime: ModelRuntime, task: TokenizeTask): Promise<Tokens> {
  const tokens = await toTokens(runtime, task);
  const { vocabulary } = runtime;
  return { tokens, texts: task.withTexts ? tokens.map((token) => vocabulary.name(token)) : null };
}

async function toTokens(
  runtime: ModelRuntime,
  { source, addsSpecial }: TokenizeTask,
): Promise<number[]> {
  const { binding, vocabulary } = runtime;
  if ('chat' in source) return toChatTokens(runtime, toChatPrompt(source.chat));
  if (binding.modelKind !== 'chat') {
    const tokens = binding.model.tokenize(source.prompt, false);
    return Array.from(addsSpecial ? withSpecial(binding.model, tokens) : tokens);
  }
  const tokens = await vocabulary.tokenize(source.prompt, true);
  const start = addsSpecial ? vocabulary.textStart : null;
  return start === null || tokens[0] === start ? tokens : [start, ...tokens];
}

function detokenize({ binding, vocabulary }: ModelRuntime, tokens: readonly number[]): string {
  const unknown = tokens.find((token) => token >= vocabulary.size);
  if (unknown !== undefined) throw unknownToken(unknown, vocabulary.size, 'tokens');
  return binding.model.detokenize(Uint32Array.from(tokens), true);
}
