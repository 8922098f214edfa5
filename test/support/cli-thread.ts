// A thread in which commands of the CLI run one after the other, started by `callMillrace` in process.ts. Its environment,
// streams and home folder are its own, and change with each command. The code of the CLI is loaded once.

import os from 'node:os';
import { Readable } from 'node:stream';
import { parentPort } from 'node:worker_threads';
import { runCli } from '#cli/program.ts';
import type { CliCall } from './process.ts';

let [stdout, stderr] = ['', ''];
process.stdout.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
  stdout += Buffer.from(chunk as string).toString();
  return end(rest);
};
process.stderr.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
  stderr += Buffer.from(chunk as string).toString();
  return end(rest);
};
function end(rest: unknown[]): true {
  const callback = rest.at(-1);
  if (typeof callback === 'function') queueMicrotask(() => callback());
  return true;
}
process.exit = (code) => {
  throw new Error(`the command called process.exit(${code}): run it with runMillrace`);
};
os.homedir = () => process.env.HOME ?? '/';
(await import('node:module')).syncBuiltinESMExports();

parentPort?.on('message', async ({ args, env, input }: CliCall) => {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  const stdin = Readable.from(input === '' ? [] : [Buffer.from(input)]);
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  [stdout, stderr] = ['', ''];
  const code = await runCli(['node', 'millrace', ...args]);
  for (const event of ['SIGINT', 'SIGTERM', 'exit']) process.removeAllListeners(event);
  parentPort?.postMessage({ code, stdout, stderr });
});
