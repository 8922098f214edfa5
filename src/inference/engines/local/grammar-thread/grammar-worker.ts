// The entry point of the grammar thread. It compiles one request at a time.

import { parentPort } from 'node:worker_threads';
import { ready } from '#lib/async/thread.ts';
import { compileGrammar } from './compile-grammar.ts';
import type { GrammarJob } from './grammar-thread.ts';

parentPort?.on('message', ({ request }: GrammarJob) =>
  parentPort?.postMessage(compileGrammar(JSON.parse(request))),
);
parentPort?.postMessage(ready);
