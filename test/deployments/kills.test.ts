// Kills the server, an engine, a machine, or the server with all machines, at moments chosen by a seed. Afterwards nothing
// is lost, duplicated or left over. MILLRACE_TEST_KILLS sets how often each is killed.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { needsSandbox } from '#test/support/cloud/sandbox-programs.ts';
import { type DatabaseKind, databases } from '#test/support/databases.ts';
import {
  type IdleStep,
  KilledDeployment,
  type Place,
  type Victim,
} from '#test/support/killed-deployment.ts';
import { propertySeed } from '#test/support/property-seed.ts';
import { createRandom } from '#test/support/random.ts';
import { inSoak, isSoak } from '#test/support/soak.ts';
import { until } from '#test/support/until.ts';

const rounds = Number(process.env.MILLRACE_TEST_KILLS ?? inSoak(1, 5));
const moments = [
  'created',
  'launching',
  'starting',
  'ready',
  'serving',
  'asleep',
  'stopped',
  'waking',
  'draining',
  'stopping',
] as const;
type Moment = (typeof moments)[number];
/** The first moment at which there is something to kill. */
const firstMoment: Record<Victim, Moment> = {
  server: 'created',
  host: 'created',
  machine: 'launching',
  engine: 'starting',
};

interface Round {
  readonly victim: Victim;
  readonly moment: Moment;
  readonly place: Place;
  readonly step: IdleStep;
  readonly loadMs: number;
  readonly delayMs: number;
}

const skip = needsSandbox();
describe('kill -9', { skip }, () => {
  // In `npm test` two victims take turns on the databases. A host takes the server and the machines with it.
  const victims = inSoak(['engine', 'host'], Object.keys(firstMoment)) as Victim[];
  for (const [at, victim] of victims.entries())
    for (const database of isSoak ? databases : databases.slice(at % databases.length).slice(0, 1))
      test(`of the ${victim}, ${rounds} times (${database}, seed ${propertySeed})`, (context) =>
        killOften(context, victim, database));
});

async function killOften(
  context: TestContext,
  victim: Victim,
  database: DatabaseKind,
): Promise<void> {
  const tested = await KilledDeployment.open(database);
  context.after(() => tested.close());
  const random = createRandom(propertySeed + victim.length);
  const possible = moments.slice(moments.indexOf(firstMoment[victim]));
  for (let count = 0; count < rounds; count++) {
    const moment = possible[random(possible.length)] ?? 'ready';
    const isOnMachine = victim === 'machine' || moment === 'stopped' || random(3) > 0;
    const round: Round = {
      victim,
      moment,
      place: isOnMachine ? 'machine' : 'host',
      step: toIdleStep(moment, isOnMachine && random(2) > 0),
      loadMs: random(500),
      delayMs: random(300),
    };
    await playRound(tested, round).catch((cause) => {
      throw new Error(`round ${count} failed: ${JSON.stringify(round)}`, { cause });
    });
  }
}

const isStopped = (moment: Moment) => moment === 'draining' || moment === 'stopping';

function toIdleStep(moment: Moment, wakesFromStopped: boolean): IdleStep {
  if (moment === 'waking') return wakesFromStopped ? 'stopped' : 'asleep';
  return moment === 'asleep' || moment === 'stopped' ? moment : null;
}

async function playRound(tested: KilledDeployment, round: Round): Promise<void> {
  const { victim, moment, step } = round;
  const env = { LOAD_MS: `${round.loadMs}`, TOKEN_MS: '20', TOKENS: '20' };
  await tested.create(round.place, step, env);
  const requests = moment === 'created' ? [] : [tested.chat(), tested.chat({ stream: true })];
  await reach(tested, round, Promise.allSettled(requests));
  if (moment === 'waking') requests.push(tested.chat());
  const answers = Promise.allSettled(requests);
  await tested.kill(victim, round.delayMs);
  await tested.keepAwake(step);
  if (isStopped(moment)) await tested.send('POST', '/api/v1/deployments/tested/start');
  const { status, text } = await tested.chat();
  assert.equal(status, 200, text);
  if (victim === 'engine' || victim === 'machine') checkAnswers(await answers, isStopped(moment));
  await checkWorld(tested);
  await tested.send('DELETE', '/api/v1/deployments/tested');
  await until('nothing is left', async () => {
    const { machines, engines, replicaRows, instanceRows } = await tested.running();
    const left = [machines, replicaRows, instanceRows, await tested.backends()].flat();
    return engines === 0 && left.length === 0;
  });
}

/** Resolves when the deployment is in the state to be killed in, or has just left it. */
async function reach(
  tested: KilledDeployment,
  { moment, step }: Round,
  answers: Promise<unknown>,
): Promise<void> {
  const has = async (state: string) =>
    (await tested.show()).replicas.some((one) => one.state === state);
  const isServing = async () => (await tested.show()).running > 0;
  if (moment === 'launching') await until('it is launched', () => has('starting'));
  if (moment === 'starting') await until('the engine starts', tested.hasEngine);
  if (moment === 'ready') await until('it is ready', () => has('ready'));
  if (moment === 'serving' || moment === 'draining') await until('it serves', isServing);
  if (moment === 'stopping') await answers;
  if (step !== null) await until(`it is ${step}`, () => has(step));
  if (!isStopped(moment)) return;
  await tested.send('POST', '/api/v1/deployments/tested/stop');
  await until(`it is ${moment}`, async () => !(await has('ready')));
}

/** Requests that wait or run outlive engines and machines. Those of a stopped deployment may be refused. */
function checkAnswers(
  answers: readonly PromiseSettledResult<{ status: number; text: string }>[],
  mayFail: boolean,
): void {
  for (const answer of answers) {
    assert(answer.status === 'fulfilled', String((answer as PromiseRejectedResult).reason));
    const { status, text } = answer.value;
    const isWhole = status === 200 && / 19"/.test(text) && !/"error"/.test(text);
    assert(isWhole || mayFail, `${status}: ${text}`);
  }
}

/** One replica runs, and everything that runs belongs to it. */
async function checkWorld(tested: KilledDeployment): Promise<void> {
  const replica = await until('one replica is left', async () => {
    const { replicas, status } = await tested.show();
    return replicas.length === 1 && status === 'ready' ? replicas[0] : undefined;
  });
  const { id, instance_id: instanceId } = replica;
  const machines = instanceId === null ? [] : [instanceId];
  const expected = { machines, engines: 1, replicaRows: machines, instanceRows: machines };
  const isSame = async () => JSON.stringify(await tested.running()) === JSON.stringify(expected);
  // Machines of killed replicas may take a moment to end.
  await until('nothing else runs', isSame, 20_000).catch(() => {});
  assert.deepEqual(await tested.running(), expected);
  // The one that held requests, and those of killed replicas, leave when their last request has ended.
  const backend = `tested-${id.slice(0, 8)}`;
  await until('it has no other backend', async () => `${await tested.backends()}` === backend);
}
