// The thread of the tests of JobThread: answers with the question, or ends in the way that it names.

import { parentPort, threadId } from 'node:worker_threads';

parentPort?.on('message', (question: string) => {
  if (question === 'die') process.exit(1);
  if (question === 'loop') for (;;);
  if (question === 'fill') fill();
  parentPort?.postMessage({ question, threadId });
});

function fill(): never {
  const lists: number[][] = [];
  for (;;) lists.push(new Array(100_000).fill(0.5));
}
