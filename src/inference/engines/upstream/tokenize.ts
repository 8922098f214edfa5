// Tokens of a text or a conversation, and the text of tokens, by the server's own tokenizer. vLLM and SGLang share one
// form; llama-server has its own.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { Engine } from '#inference/engine.ts';
import type { TokenizeTask, Tokens } from '#inference/pooling.ts';
import {
  applyTemplate,
  type PostJson,
  toPostJson,
  toTemplated,
  type UpstreamServer,
} from './count-tokens.ts';
import { toFailure, unavailable } from './failures.ts';
import type { UpstreamClient } from './upstream-client.ts';

type Tokenizer = Pick<Engine, 'tokenize' | 'detokenize'>;

/** Empty for servers that have no such endpoint. */
export function createTokenizer(
  client: UpstreamClient,
  { server, model }: { server: UpstreamServer; model: string },
): Tokenizer {
  if (server === 'ollama' || server === 'openai') return {};
  const toPost = (signal: Cancellation) =>
    toPostJson(client, signal, ({ status, headers, text }) =>
      toFailure(status, headers, text, { kind: 'pooling', body: {} }),
    );
  return {
    tokenize: (task, signal) =>
      server === 'llama-server'
        ? tokenizeByLlamaServer(toPost(signal), task)
        : tokenize(toPost(signal), server, model, task),
    async detokenize(tokens, signal) {
      const given = await toPost(signal)('/detokenize', { model, tokens });
      const text = given.prompt ?? given.text ?? given.content;
      if (typeof text !== 'string') throw unavailable('did not return the text of tokens');
      return text;
    },
  };
}

async function tokenize(
  post: PostJson,
  server: 'vllm' | 'sglang',
  model: string,
  { source, addsSpecial, withTexts }: TokenizeTask,
): Promise<Tokens> {
  const text = 'chat' in source ? toTemplated(server, source.chat) : { prompt: source.prompt };
  const { tokens, token_strs } = await post('/tokenize', {
    model,
    ...text,
    add_special_tokens: addsSpecial,
    ...(withTexts && { return_token_strs: true }),
  });
  return { tokens: toIds(tokens), texts: withTexts ? toTexts(token_strs) : null };
}

async function tokenizeByLlamaServer(
  post: PostJson,
  { source, addsSpecial, withTexts }: TokenizeTask,
): Promise<Tokens> {
  const content = 'chat' in source ? await applyTemplate(post, source.chat) : source.prompt;
  const { tokens } = await post('/tokenize', {
    content,
    add_special: addsSpecial,
    parse_special: true,
    ...(withTexts && { with_pieces: true }),
  });
  if (!withTexts || !Array.isArray(tokens)) return { tokens: toIds(tokens), texts: null };
  const pieces = tokens as { id?: unknown; piece?: unknown }[];
  const ids = toIds(pieces.map((piece) => piece?.id));
  // A token that is not valid UTF-8 comes as its bytes.
  const texts = pieces.map(({ piece }) =>
    typeof piece === 'string' ? piece : Buffer.from(toIds(piece)).toString(),
  );
  return { tokens: ids, texts };
}

function toIds(given: unknown): number[] {
  if (Array.isArray(given) && given.every((id) => Number.isSafeInteger(id) && id >= 0))
    return given;
  throw unavailable('did not return token ids');
}

function toTexts(given: unknown): string[] | null {
  return Array.isArray(given) && given.every((text) => typeof text === 'string') ? given : null;
}
