// Calls an engine as the server does, and reads its stream as chunks, whichever form they come in.

import type { Call, Task } from '#inference/engine.ts';
import type { EngineChunk, Usage, WireEvents } from '#inference/wire/response.ts';

export function newCall(overrides: Partial<Call> = {}, kind: Task['kind'] = 'chat'): Call {
  return {
    envelope: { requestId: '1', id: 'chat-1', created: 1_700_000_000, model: 'm', kind },
    signal: new AbortController().signal,
    caller: 'tester',
    priority: 0,
    contextWindow: 131_072,
    ...overrides,
  };
}

/** Reads a stream to its end. Wire events have no usage, so the usage that was reported last is appended. */
export async function readStream(
  stream: AsyncIterable<EngineChunk | WireEvents>,
  lastUsage: () => Usage | null = () => null,
): Promise<EngineChunk[]> {
  const chunks: EngineChunk[] = [];
  let isWire = false;
  for await (const item of stream) {
    if (typeof item !== 'string') chunks.push(item);
    else {
      isWire = true;
      chunks.push(...parseEvents(item));
    }
  }
  const usage = lastUsage();
  if (isWire && usage !== null) chunks.push({ choices: [], usage });
  return chunks;
}

function parseEvents(events: WireEvents): EngineChunk[] {
  const text = Buffer.from(events, 'latin1').toString();
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => ({ usage: null, ...JSON.parse(event.slice('data: '.length)) }));
}
