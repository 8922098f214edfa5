// What the child computes besides generated text: vectors of texts, scores of documents, and answers about tokens.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { Engine, PoolingCall } from '#inference/engine.ts';
import type { Answer, Question } from '#inference/engines/local/protocol.ts';
import type { Embeddings, PoolingTask } from '#inference/pooling.ts';
import type { ChildRequests } from './child-requests.ts';

type ChildAnswers = Required<
  Pick<Engine, 'embed' | 'rerank' | 'tokenize' | 'detokenize' | 'countPromptTokens'>
>;

export const createChildAnswers = (requests: ChildRequests) =>
  ({
    embed: async (task, call) => pool(requests, task, call),
    async rerank(task, call) {
      const { vectors, promptTokens } = await pool(requests, task, call);
      return { scores: vectors.map(([score]) => score ?? 0), promptTokens };
    },
    tokenize: async (task, signal) => ask(requests, { kind: 'tokenize', task }, signal),
    detokenize: async (tokens, signal) => ask(requests, { kind: 'detokenize', tokens }, signal),
    countPromptTokens: async (task, signal): Promise<number> =>
      ask(requests, { kind: 'count', task }, signal),
  }) satisfies ChildAnswers;

/** The child answers each kind of question with its own kind of answer. */
function ask<Kind extends Answer>(
  requests: ChildRequests,
  question: Question,
  signal: Cancellation,
): Promise<Kind> {
  const { promise, resolve, reject } = Promise.withResolvers<Kind>();
  const listener = { answer: (given: Answer) => resolve(given as Kind), failed: reject };
  requests.send({ signal, caller: 'count' }, (id) => ({ kind: 'ask', id, question }), listener);
  return promise;
}

function pool(requests: ChildRequests, task: PoolingTask, call: PoolingCall): Promise<Embeddings> {
  const { promise, resolve, reject } = Promise.withResolvers<Embeddings>();
  const { caller, priority } = call;
  const vectors: Float32Array[] = [];
  let promptTokens = 0;
  requests.send(call, (id) => ({ kind: 'pool', id, task, context: { caller, priority } }), {
    vector(index, vector, soFar) {
      vectors[index] = vector;
      promptTokens = soFar.prompt_tokens;
      call.onUsage?.(soFar);
    },
    ended: () => resolve({ vectors, promptTokens }),
    failed: reject,
  });
  return promise;
}
