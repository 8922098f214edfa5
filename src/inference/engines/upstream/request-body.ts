// What is sent upstream: the client's request with the upstream's name for the model. Every other member
// passes on as it came.

import type { Task } from '../../engine.ts';

export const paths: Record<Task['kind'], string> = {
  chat: '/chat/completions',
  completion: '/completions',
};

/** Streams always ask for usage: what was used is billed whether or not the client wants to see it. */
export function toRequestBody({ body }: Task, model: string, streams: boolean): string {
  const sent: Record<string, unknown> = {};
  for (const name in body) {
    const value = (body as Record<string, unknown>)[name];
    // Null means "not given" here, but not to every server.
    if (value !== null && name !== 'stream' && name !== 'stream_options') sent[name] = value;
  }
  sent.model = model;
  if (streams) {
    sent.stream = true;
    sent.stream_options = { ...body.stream_options, include_usage: true };
  }
  return JSON.stringify(sent);
}
