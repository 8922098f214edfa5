// The worker that parses bodies, except that a body with the string "die" ends it.

import { parentPort } from 'node:worker_threads';
import type { BodyJob } from '#inference/apis/bodies/body-thread.ts';

parentPort?.on('message', ({ bytes }: BodyJob) => {
  if (Buffer.from(bytes).includes('"die"')) process.exit(1);
});
await import('#inference/apis/bodies/body-worker.ts');
