// What is sent upstream: the client's request with the upstream's name for the model. Every other member
// passes on as it came.

import type { Task } from '../../engine.ts';

export const paths: Record<Task['kind'], string> = {
  chat: '/chat/completions',
  completion: '/completions',
};

/** Streams always ask for usage: what was used is billed whether or not the client wants to see it. */
export function toRequestBody({ body }: Task, model: string, streams: boolean): string {
  const sent: Record<string, unknown> = {
    ...body,
    model,
    stream: streams || undefined,
    stream_options: streams ? { ...body.stream_options, include_usage: true } : undefined,
  };
  // Null means "not given" here, but not to every server.
  for (const name in sent) if (sent[name] === null) sent[name] = undefined;
  return JSON.stringify(sent);
}
