// One child process with one model: started, watched and ended. It is never restarted; its owner starts a new one.

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ToChild, ToParent } from '#inference/engines/local/protocol.ts';
import { compileCacheEnvironment } from '#lib/computer/compile-cache.ts';

export interface ModelProcess {
  readonly pid: number | null;
  send(message: ToChild): void;
  /** Lets the child finish its batch, and kills it if it does not exit in time. Resolves when it has exited. */
  close(): Promise<void>;
}

export interface ModelProcessEvents {
  message(message: ToParent): void;
  /** The child has exited. `expected` is true after `close`. */
  exit(reason: string, expected: boolean): void;
  /** A line that the child or its native code printed. */
  output(line: string): void;
}

const entry = fileURLToPath(new URL('../child/main.ts', import.meta.url));
const heartbeatMs = 5000;
/** Counted in heartbeats rather than time: a pause of this process must not count against the child. */
const maxMissedHeartbeats = 6;
/** How long `close` waits before it kills the child. */
const closeGraceMs = 2000;
/** How long an exit waits for the rest of the child's output. */
const outputGraceMs = 100;

/**
 * The child does nothing until it gets the message `load`. With two threads in its pool, a GPU's samples of several
 * sequences are taken side by side.
 */
export function startModelProcess(events: ModelProcessEvents, poolThreads: 1 | 2): ModelProcess {
  const child = fork(entry, [String(poolThreads)], {
    serialization: 'advanced',
    // The work is native and creates little garbage. With these flags the child's size stays near that of weights and
    // cache.
    execArgv: ['--optimize-for-size', '--max-semi-space-size=1'],
    env: childEnvironment(process.env, poolThreads),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let closing = false;
  let unanswered = 0;
  const gone = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
  });

  const heartbeat = setInterval(() => {
    if (unanswered++ >= maxMissedHeartbeats) child.kill('SIGKILL');
    else send({ kind: 'ping' });
  }, heartbeatMs).unref();

  function send(message: ToChild): void {
    // If the child has just died, its exit event fails the request.
    if (child.connected) child.send(message, () => {});
  }

  child.on('message', (message) => {
    unanswered = 0;
    events.message(message as ToParent);
  });
  let exited = false;
  function exit(reason: string): void {
    if (exited) return;
    exited = true;
    clearInterval(heartbeat);
    events.exit(reason, closing);
  }
  child.once('error', (error) => exit(`could not be run: ${error.message}`));
  child.once('exit', (code, signal) => {
    const reason = signal === null ? `exited with status ${code}` : `was killed by ${signal}`;
    // The last lines of output may say why it exited.
    const timer = setTimeout(() => exit(reason), outputGraceMs);
    void gone.then(() => {
      clearTimeout(timer);
      exit(reason);
    });
  });
  watchOutput(child, events.output);

  return {
    pid: child.pid ?? null,
    send,
    async close() {
      closing = true;
      send({ kind: 'close' });
      const timer = setTimeout(() => child.kill('SIGKILL'), closeGraceMs);
      await gone;
      clearTimeout(timer);
    },
  };
}

function watchOutput(child: ChildProcess, output: (line: string) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8');
    stream?.on('data', (text: string) => {
      for (const line of text.split('\n')) if (line.trim() !== '') output(line.slice(0, 1000));
    });
  }
}

/** Passes on what the loader and GPU drivers need and none of the API's secrets. */
function childEnvironment(parent: NodeJS.ProcessEnv, poolThreads: number): NodeJS.ProcessEnv {
  const wanted = /^(PATH|HOME|TMPDIR|LANG|LD_LIBRARY_PATH|(CUDA|NVIDIA|VK|GGML|MESA)_.*)$/;
  const kept = Object.entries(parent).filter(([name]) => wanted.test(name));
  const pool = { UV_THREADPOOL_SIZE: String(poolThreads) };
  return { ...Object.fromEntries(kept), ...compileCacheEnvironment(), ...pool };
}
