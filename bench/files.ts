// The source files that a streamed chat through an upstream crosses: those of which a function runs between the arrival
// of the request and the writing of its usage row, on SQLite with keys, limits and metering on. Prints them with
// their lengths. Usage: node bench/files.ts [checkout]

import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { once } from './gateway/load.ts';
import { createServers, key, listening } from './gateway/servers.ts';

const [checkout = join(import.meta.dirname, '..')] = process.argv.slice(2);
const root = resolve(checkout);
const ports = { quick: 18_290, slow: 18_290, ours: 18_291, inspector: 18_292 };
/** Requests that are counted one by one. What runs by a timer is in only some of them, and so is left out. */
const requests = 10;

const chat = {
  model: 'hermes3-8b',
  messages: [{ role: 'user', content: 'How many rivers meet at the old mill?' }],
  max_tokens: 256,
  stream: true,
};

interface Scripts {
  readonly result: {
    readonly url: string;
    readonly functions: readonly { functionName: string; ranges: readonly { count: number }[] }[];
  }[];
}

/** The protocol of V8's inspector over its socket: of the main thread, and through it of each worker. */
class Inspector {
  readonly #socket: WebSocket;
  readonly #workers = new Set<string>();
  readonly #pending = new Map<number, (result: unknown) => void>();
  #lastId = 0;

  constructor(url: string) {
    this.#socket = new WebSocket(url);
    this.#socket.addEventListener('message', ({ data }) => this.#receive(JSON.parse(data)));
  }

  async open(): Promise<void> {
    await new Promise((done) => this.#socket.addEventListener('open', done));
    await this.#call('NodeWorker.enable', { waitForDebuggerOnStart: false });
    // At least the thread that writes usage.
    while (this.#workers.size === 0) await new Promise((done) => setTimeout(done, 10));
    await this.callAll('Profiler.enable');
    await this.callAll('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  }

  /** The results of the main thread and of all workers. */
  callAll(method: string, params: object = {}): Promise<unknown[]> {
    const ofWorkers = [...this.#workers].map((sessionId) => {
      const { id, result } = this.#expect();
      const message = JSON.stringify({ id, method, params });
      void this.#call('NodeWorker.sendMessageToWorker', { sessionId, message });
      return result;
    });
    return Promise.all([this.#call(method, params), ...ofWorkers]);
  }

  #call(method: string, params: object): Promise<unknown> {
    const { id, result } = this.#expect();
    this.#socket.send(JSON.stringify({ id, method, params }));
    return result;
  }

  #expect(): { id: number; result: Promise<unknown> } {
    const id = ++this.#lastId;
    return { id, result: new Promise((done) => this.#pending.set(id, done)) };
  }

  #receive({ id, result, method, params }: Record<string, never>): void {
    if (id !== undefined) this.#pending.get(id)?.(result);
    const { sessionId, message } = (params ?? {}) as { sessionId: string; message: string };
    if (method === 'NodeWorker.attachedToWorker') this.#workers.add(sessionId);
    if (method === 'NodeWorker.detachedFromWorker') this.#workers.delete(sessionId);
    if (method === 'NodeWorker.receivedMessageFromWorker') this.#receive(JSON.parse(message));
  }
}

const { folder, script, millrace } = createServers();
script('gateway/upstream.ts', ports.quick, 50, 0);
process.env.NODE_OPTIONS = `--inspect=127.0.0.1:${ports.inspector}`;
millrace(root, ports.ours, ports);
for (const port of [ports.quick, ports.ours]) await listening(port);

// The thread that writes usage starts with the first row.
await chatAndWait(1);
const inspector = await attach();
await chatAndWait(2);
let common: Set<string> | null = null;
for (let count = 0; count < requests; count++) {
  await inspector.callAll('Profiler.takePreciseCoverage');
  await chatAndWait(3 + count);
  const run = toFiles(
    (await inspector.callAll('Profiler.takePreciseCoverage')) as (Scripts | undefined)[],
  );
  common = common === null ? run : common.intersection(run);
}
print([...(common ?? [])].sort());
process.exit(0);

async function attach(): Promise<Inspector> {
  const response = await fetch(`http://127.0.0.1:${ports.inspector}/json/list`);
  const [target] = (await response.json()) as { webSocketDebuggerUrl: string }[];
  const inspector = new Inspector(target?.webSocketDebuggerUrl ?? '');
  await inspector.open();
  return inspector;
}

/** Sends a chat, and waits until so many usage rows are complete. */
async function chatAndWait(rows: number): Promise<void> {
  const headers = { authorization: `Bearer ${key}` };
  await once({ name: 'millrace', port: ports.ours, headers }, JSON.stringify(chat));
  const data = readdirSync(folder).find((name) => name.startsWith('data-')) ?? '';
  const database = new DatabaseSync(join(folder, data, 'millrace.db'), { readOnly: true });
  const query = database.prepare(
    "select count(*) as rows from usage_requests where status <> 'running'",
  );
  while (Number(query.get()?.rows) < rows) await new Promise((done) => setTimeout(done, 5));
  database.close();
}

/** A thread that began later has no scripts. */
function toFiles(threads: readonly (Scripts | undefined)[]): Set<string> {
  const source = join(root, 'src/');
  const files = threads
    .flatMap((scripts) => scripts?.result ?? [])
    // The function without a name is the file itself, which ran when it was loaded.
    .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
    .filter(({ url }) => url.startsWith('file:'))
    .map(({ url }) => fileURLToPath(url));
  return new Set(files.filter((file) => file.startsWith(source)));
}

function print(files: readonly string[]): void {
  const lines = files.map((file) => readFileSync(file, 'utf8').trimEnd().split('\n').length);
  for (const [index, file] of files.entries())
    console.log(`${String(lines[index]).padStart(5)} ${file.slice(root.length + 1)}`);
  console.log(`${files.length} files, ${lines.reduce((sum, one) => sum + one, 0)} lines`);
}
