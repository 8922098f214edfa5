// Compacts a conversation: the model summarises it, and the client continues with the summary in
// place of the items. The newest messages of people are kept as they were, so that no task is lost
// in the summary.

import type { Generation } from '#inference/apis/endpoint.ts';
import { toInputItems, toTask } from '#inference/apis/responses/request/to-task.ts';
import { inferenceErrorFormat } from '#inference/errors.ts';
import type { ChatChoice } from '#inference/wire/response.ts';
import { toResponseUsage } from './response-object.ts';
import type { CompactedResponse, CompactRequest, InputItem } from './schema.ts';
import type { Sealer } from './sealer.ts';

/** Maximum characters of messages that are kept as they were. */
const maxKeptLength = 40_000;
const maxSummaryTokens = 4096;

const wish = `Summarise this conversation for another model that will continue it and knows nothing else. State the task, \
what was decided and why, what was done and with which results, what is left to do, and every name, path, figure and \
text that is needed for it. Write only the summary.`;

export function toCompaction(
  request: CompactRequest,
  items: readonly InputItem[],
  sealer: Sealer,
  requestId: string,
): Generation {
  const asked: InputItem = { type: 'message', role: 'user', content: wish };
  const { model, instructions, prompt_cache_key } = request;
  // Compaction is asked for when the window is full, so there must be room for the wish and the summary.
  const truncation = 'auto' as const;
  const bounds = { truncation, max_output_tokens: maxSummaryTokens };
  const input = [...toInputItems(request.input), asked];
  const { task, names } = toTask(
    { model, input, instructions, prompt_cache_key, ...bounds },
    [...items, asked],
    sealer.open,
  );
  return {
    task,
    format: {
      operation: 'responses',
      errors: inferenceErrorFormat,
      names,
      toWhole({ choices, usage }, { created }): CompactedResponse {
        const summary = (choices[0] as ChatChoice).message.content ?? '';
        return {
          id: `resp_${requestId}`,
          object: 'response.compaction',
          created_at: created,
          output: [
            ...keepMessages(items),
            {
              id: `cmp_${requestId}`,
              type: 'compaction',
              encrypted_content: sealer.close(summary),
            },
          ],
          usage: toResponseUsage(usage),
        };
      },
      openStream() {
        throw new Error('A compaction is not streamed');
      },
    },
  };
}

/** The newest messages that are not the model's, as far as there is room. */
function keepMessages(items: readonly InputItem[]): InputItem[] {
  const kept: InputItem[] = [];
  let length = 0;
  for (const item of items.toReversed()) {
    const isMessage = (item.type ?? 'message') === 'message' && item.role !== 'assistant';
    if (!isMessage) continue;
    length += JSON.stringify(item.content ?? '').length;
    if (length > maxKeptLength) break;
    kept.unshift({ ...item, type: 'message' });
  }
  return kept;
}
