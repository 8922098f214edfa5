// One child process with one model: started, watched, ended. It is never restarted; its owner makes a
// new one.

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { CoreOptions } from '#inference/engines/local/child/runtime.ts';
import type { ToChild, ToParent } from '#inference/engines/local/protocol.ts';

export interface ModelProcess {
  readonly pid: number | null;
  send(message: ToChild): void;
  /** Lets the batch that is running finish, then ends it by force. Resolves when it is gone. */
  close(): Promise<void>;
}

export interface ModelProcessEvents {
  message(message: ToParent): void;
  /** It is gone. `expected` when `close` was called. */
  exit(reason: string, expected: boolean): void;
  /** A line that the child or its native code printed. */
  output(line: string): void;
}

const entry = fileURLToPath(new URL('../child/main.ts', import.meta.url));
const heartbeatMs = 5000;
/** Counted in beats, not by the clock: after a pause of this process the child is not to blame. */
const missedBeats = 6;
const graceMs = 2000;
const lastWordsMs = 100;

export function startModelProcess(options: CoreOptions, events: ModelProcessEvents): ModelProcess {
  const child = fork(entry, [], {
    serialization: 'advanced',
    // The work is native and little garbage is made: the child stays near the size of weights and cache.
    execArgv: ['--optimize-for-size', '--max-semi-space-size=1'],
    env: childEnvironment(process.env),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let closing = false;
  let unanswered = 0;
  const gone = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
  });

  const heartbeat = setInterval(() => {
    if (unanswered++ >= missedBeats) child.kill('SIGKILL');
    else send({ kind: 'ping' });
  }, heartbeatMs).unref();

  function send(message: ToChild): void {
    // A message to a child that has just died is answered by its exit.
    if (child.connected) child.send(message, () => {});
  }

  child.on('message', (message) => {
    unanswered = 0;
    events.message(message as ToParent);
  });
  let exited = false;
  function left(reason: string): void {
    if (exited) return;
    exited = true;
    clearInterval(heartbeat);
    events.exit(reason, closing);
  }
  child.once('error', (error) => left(`could not be run: ${error.message}`));
  child.once('exit', (code, signal) => {
    const reason = signal === null ? `ended with status ${code}` : `was ended by ${signal}`;
    // Its last words may say why, and are read by then; nobody waits for long.
    const timer = setTimeout(() => left(reason), lastWordsMs);
    void gone.then(() => {
      clearTimeout(timer);
      left(reason);
    });
  });
  watchOutput(child, events.output);
  send({ kind: 'load', options });

  return {
    pid: child.pid ?? null,
    send,
    async close() {
      closing = true;
      send({ kind: 'close' });
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
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

/**
 * The child sees what the loader and GPU drivers need and none of the API's secrets. With more than one
 * pool thread a batch moves between cores and its helper threads spin on the wrong ones.
 */
function childEnvironment(parent: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const wanted = /^(PATH|HOME|TMPDIR|LANG|LD_LIBRARY_PATH|(CUDA|NVIDIA|VK|GGML|MESA)_.*)$/;
  const kept = Object.entries(parent).filter(([name]) => wanted.test(name));
  return { ...Object.fromEntries(kept), UV_THREADPOOL_SIZE: '1' };
}
