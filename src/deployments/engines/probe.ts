// Asks an engine for one token: it is ready once it generates that, not when its port is open.

import { readBounded } from '#lib/async/read-bounded.ts';

export interface Probe {
  /** True if the engine generated a token. */
  readonly answers: boolean;
  /** What came of it, as a sentence; null if there is nothing to say. */
  readonly outcome: string | null;
}

/** The response to a probe has one token. */
const maxProbeBytes = 1_048_576;

/** `post` sends a request to the engine. Never rejects. */
export async function probe(
  post: (path: string, body: object) => Promise<Response>,
  model: string,
): Promise<Probe> {
  const messages = [{ role: 'user', content: 'Hi' }];
  let outcome: string | null = null;
  try {
    const response = await post('/v1/chat/completions', { model, messages, max_tokens: 1 });
    outcome = `Its last response to a chat had the status ${response.status}.`;
    const text = response.body && (await readBounded(response.body, maxProbeBytes));
    const { choices } = JSON.parse(text?.toString() ?? '{}') as { choices?: unknown };
    return { answers: response.ok && Array.isArray(choices) && choices.length > 0, outcome };
  } catch (error) {
    if (toErrorCode(error) === 'ECONNREFUSED') outcome = 'Nothing listens at its port.';
    return { answers: false, outcome };
  }
}

/** `fetch` hides the code of an error in its cause. */
const toErrorCode = (error: unknown) =>
  ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code;
