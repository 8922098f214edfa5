// The user data of a machine that runs an engine: a script that runs the set-up script and starts the
// engine. If the engine was told to stop, the script waits until it is told to start it again. Its output is
// in the machine's boot log.

import type { DeploymentSpec } from '#deployments/ground/spec.ts';
import { shellQuote } from '#lib/text/shell-quote.ts';
import { illegalInstruction } from './engine.ts';
import { type EnginePlace, findProgramFolder, type Recipe, recipes } from './recipes.ts';

/** The port of the engine inside its machine, which runs nothing else. */
export const enginePort = 8_000;

const folder = '/var/lib/millrace-engine';

export function toEngineScript(spec: DeploymentSpec, key: string): string {
  const recipe = recipes[spec.engine];
  const place: EnginePlace = { port: enginePort, key, millrace: ['millrace'] };
  const environment = { ...spec.env, ...recipe.toEnvironment(spec, place) };
  const command = recipe.toCommand(spec, place);
  const own = findProgramFolder(command);
  // In the background: some systems start their ssh server only after this script.
  return `#!/bin/sh
(
umask 077
mkdir -p ${folder} && cd ${folder} || exit 1
export HOME="\${HOME:-/root}"
${own === null ? '' : `export PATH=${shellQuote(own)}:"$PATH"`}
${Object.entries(environment)
  .map(([name, value]) => `export ${name}=${shellQuote(value)}`)
  .join('\n')}
${spec.setup === null ? '' : toSetup(spec.setup)}
mkfifo control
while :; do
  rm -f halted
  echo "${mark} starting the engine"
  # A session of its own, so that its children end with it.
  $(command -v setsid) ${command.map(shellQuote).join(' ')} &
  echo $! >pid
  wait $!
  code=$?
  rm -f pid
  [ -e halted ] || break
  echo "${mark} the engine was stopped"
  read -r _ <control || break
done
echo "${mark} the engine ended with exit code $code"
) </dev/null 2>&1 &
`;
}

/** Ends the engine in its machine, and returns when it has ended. */
export const haltCommand = [
  '/bin/sh',
  '-c',
  `cd ${folder} || exit 1
: >halted
read -r pid 2>/dev/null <pid || exit 0
kill -TERM "-$pid" || kill -TERM "$pid"
tries=0
while kill -0 "-$pid" || kill -0 "$pid"; do
  tries=$((tries + 1))
  [ $tries -lt 100 ] || kill -KILL "-$pid" || kill -KILL "$pid"
  [ $tries -lt 150 ] || exit 1
  sleep 0.1 || sleep 1
done 2>/dev/null
exit 0`,
];

/** Starts an engine that was halted. Opening the pipe waits until the script reads it. */
export const reviveCommand = [
  '/bin/sh',
  '-c',
  `cd ${folder} || exit 1
[ ! -e halted ] || echo >control`,
];

const mark = 'millrace:';

const toSetup = (setup: string) => `echo "${mark} setting up"
${writeFile('setup', setup)}
chmod 700 setup
${setup.startsWith('#!') ? './setup' : 'sh ./setup'} || {
  echo "${mark} the set-up script ended with exit code $?"
  exit 1
}`;

const writeFile = (name: string, text: string) =>
  `base64 -d >${shellQuote(name)} <<'END'\n${Buffer.from(text).toString('base64')}\nEND`;

/** Lines of the boot log that say how far the script is. */
export const scriptProgress: Recipe['progress'] = [
  [/^millrace: setting up$/, 'setting up the machine'],
  [/^millrace: starting the engine$/, 'starting the engine'],
];

/** As shells say it. */
const notFound = 'the engine ended with exit code 127';
const killed = 'the engine ended with exit code 137';
const illegal = 'the engine ended with exit code 132';

/** How the engine ended after its last start, as a sentence; undefined if the boot log does not say so. */
export function findEnding(bootLog: readonly string[]): string | undefined {
  for (const line of bootLog.toReversed()) {
    if (line === `${mark} starting the engine`) return undefined;
    const ending = /^millrace: (the (?:engine|set-up script) ended with exit code \d+)$/.exec(line);
    if (ending?.[1] === notFound)
      return 'The machine has no such program. Install it by a set-up script.';
    if (ending?.[1] === killed)
      return 'The engine was killed (exit code 137). The machine probably has too little memory.';
    if (ending?.[1] === illegal) return illegalInstruction;
    if (ending?.[1] !== undefined) return `T${ending[1].slice(1)}.`;
    if (/^user data was not run/.test(line))
      return 'Machines without isolation run no engines. Deploy on the host instead.';
  }
  return undefined;
}
