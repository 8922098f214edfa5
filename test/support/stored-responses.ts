// Response objects for tests of storage.

import assert from 'node:assert';
import type { MessageItem, ResponseObject } from '#inference/apis/responses/schema.ts';
import { InferenceError } from '#inference/errors.ts';
import { newId } from '#lib/ids.ts';

/** A message of the model. */
export const say = (text: string): MessageItem => ({
  id: `msg_${newId()}`,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
});

export const responseObject = ({
  previous = null,
  output,
}: {
  previous?: string | null;
  output: ResponseObject['output'];
}): ResponseObject => ({
  id: `resp_${newId()}`,
  object: 'response',
  created_at: 1,
  completed_at: 2,
  status: 'completed',
  error: null,
  incomplete_details: null,
  model: 'm',
  output,
  usage: null,
  background: false,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: previous,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: 'default',
  store: true,
  temperature: null,
  text: {},
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: null,
  truncation: 'disabled',
  user: null,
});

/** Returns the error with which the work is refused. */
export async function refuses(
  status: number,
  work: () => Promise<unknown>,
): Promise<InferenceError> {
  const error = await work().then(
    () => assert.fail('it was not refused'),
    (error: unknown) => error,
  );
  assert(error instanceof InferenceError, String(error));
  assert.equal(error.status, status, error.message);
  return error;
}
