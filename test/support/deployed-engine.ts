// An engine for tests of deployments: a program with OpenAI's API that says which process answered. The environment
// decides how it behaves. Started as vLLM or SGLang is, it also sleeps as that does.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';

const {
  VLLM_API_KEY,
  VLLM_SERVER_DEV_MODE,
  PORT = argumentOf('--port'),
  API_KEY = VLLM_API_KEY ?? argumentOf('--api-key'),
  LOAD_MS = '0',
  FAIL = '',
  TOKEN_MS = '0',
  TOKENS = '3',
  /** Its context window in tokens; 0 if it does not say. */
  WINDOW = '0',
  /** Memory that it holds beyond what it needs. */
  HOLD_MIB = '0',
  /** The folder of a model. Its config.json is the version. */
  WEIGHTS = '',
  VERSION = WEIGHTS === '' ? '1' : readWeights(WEIGHTS),
  /** If this file does not exist, the process creates it, and fails after its first answer: it exits, or it hangs. */
  FIRST_FILE = '',
  FIRST_FAILS_BY = 'exit',
  EXIT_AFTER_MS = '',
  /** Streams wait for this file before their last token. */
  LAST_FILE = '',
  /** Status of the responses to requests that put it to sleep and wake it. */
  SLEEP_STATUS = '200',
  WAKE_STATUS = '200',
} = process.env;
if (FAIL !== '') {
  console.error(FAIL);
  process.exit(1);
}
// A constant that nothing reads could be freed.
Object.assign(globalThis, { held: Buffer.alloc(Number(HOLD_MIB) * 2 ** 20, 1) });
console.log(`process ${process.pid}`);
console.log(`loading version ${VERSION}`);
const isFirst = FIRST_FILE !== '' && !existsSync(FIRST_FILE);
if (isFirst) writeFileSync(FIRST_FILE, '');
let answers = 0;
const isVllm = process.argv.includes('--enable-sleep-mode') && VLLM_SERVER_DEV_MODE === '1';
const isSglang = process.argv.includes('--enable-memory-saver');
const sleepPath = isVllm ? '/sleep?level=1' : isSglang ? '/release_memory_occupation' : null;
const wakePath = isVllm ? '/wake_up' : isSglang ? '/resume_memory_occupation' : null;
let isAsleep = false;
const readyAt = Date.now() + Number(LOAD_MS);

const server = createServer(async (request, response) => {
  const body = await readJson(request);
  const reply = (status: number, json: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
  };
  if (request.headers.authorization !== `Bearer ${API_KEY}`) return reply(401, { error: {} });
  const hasFailed = isFirst && answers > 0;
  if (hasFailed && FIRST_FAILS_BY === 'exit' && request.method === 'POST') process.exit(1);
  if (hasFailed && request.method === 'POST') return;
  if (hasFailed) {
    console.log('a failed health check');
    return reply(500, { error: {} });
  }
  if (request.url === sleepPath) {
    if (isSglang && isAsleep) process.exit(1);
    isAsleep = SLEEP_STATUS === '200';
    if (isAsleep) console.log('fell asleep');
    return reply(Number(SLEEP_STATUS), {});
  }
  if (request.url === wakePath) {
    if (isSglang && !isAsleep) process.exit(1);
    isAsleep = false;
    console.log('woke up');
    return reply(Number(WAKE_STATUS), {});
  }
  if (isAsleep) {
    console.log('a request while it was asleep');
    return reply(500, { error: {} });
  }
  if (request.url === '/health') return reply(200, {});
  if (request.url === '/tokenize') return reply(200, { count: 3, tokens: [7, 8, 9] });
  if (request.url === '/v1/embeddings')
    return reply(200, { data: [{ index: 0, embedding: [0.5] }], usage: { prompt_tokens: 1 } });
  if (request.url === '/v1/models')
    return reply(200, { data: [{ id: 'tested', max_model_len: Number(WINDOW) }] });
  if (Date.now() < readyAt) return reply(503, { error: { message: 'still loading' } });
  answers += 1;
  const words = Array.from({ length: Number(TOKENS) }, (_, at) => (at === 0 ? VERSION : ` ${at}`));
  const usage = {
    prompt_tokens: 1,
    completion_tokens: words.length,
    total_tokens: words.length + 1,
  };
  const shared = { id: 'x', created: 1, model: 'm' };
  if (body.stream !== true) {
    await setTimeout(Number(TOKEN_MS) * words.length);
    const message = { role: 'assistant', content: words.join('') };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    return reply(200, { ...shared, object: 'chat.completion', choices, usage });
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.once('close', () => response.writableFinished || console.log('a client left'));
  const send = (choices: unknown[], rest = {}) =>
    response.write(
      `data: ${JSON.stringify({ ...shared, object: 'chat.completion.chunk', choices, ...rest })}\n\n`,
    );
  for (const [at, content] of words.entries()) {
    await setTimeout(Number(TOKEN_MS));
    while (LAST_FILE !== '' && at === words.length - 1 && !existsSync(LAST_FILE))
      await setTimeout(10);
    send([{ index: 0, delta: { content }, finish_reason: null }]);
  }
  send([{ index: 0, delta: {}, finish_reason: 'stop' }]);
  send([], { usage });
  response.end('data: [DONE]\n\n');
});
server.listen(Number(PORT), '127.0.0.1');
if (EXIT_AFTER_MS !== '') setTimeout(Number(EXIT_AFTER_MS)).then(() => process.exit(3));

function argumentOf(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at === -1 ? undefined : process.argv[at + 1];
}

function readWeights(folder: string): string {
  const text = readFileSync(`${folder}/config.json`, 'utf8').trim();
  try {
    writeFileSync(`${folder}/written`, '');
    return `${text} in ${folder}, which can be written`;
  } catch {
    return `${text} in ${folder}, read-only`;
  }
}

async function readJson(request: IncomingMessage): Promise<{ stream?: boolean }> {
  const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
  return chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
}
