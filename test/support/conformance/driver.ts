// What every driver keeps, whatever makes its machines: run over each of them from a test of its own.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Driver,
  DriverError,
  type MachineSpec,
  type MachineState,
  type Measured,
} from '#cloud/drivers/driver.ts';
import { newMachineSpec } from '#test/support/cloud/machine-spec.ts';
import { inSoak } from '#test/support/soak.ts';
import { until } from '#test/support/until.ts';
import { createSshClient, type SshClient } from './ssh-client.ts';

export interface DriverSubject {
  readonly name: string;
  /** A reason not to run, or false. */
  readonly skip: string | false;
  /** Over the same state each time, as a new start of the server would make it. */
  create(): Promise<Driver>;
  /** Module, exported function and its argument, for a driver in a process that is killed. */
  readonly inChild: readonly [module: URL, exported: string, argument: unknown];
  dispose(): Promise<void>;
}

type Running = Extract<MachineState, { state: 'running' }>;

export function checkDriver(subject: DriverSubject) {
  describe(`driver ${subject.name}`, { skip: subject.skip, timeout: 240_000 }, () => {
    let driver: Driver;
    let client: SshClient;
    const filesystem = randomBytes(16).toString('hex');

    before(async () => {
      client = createSshClient();
      driver = await subject.create();
    });
    beforeEach(() => client.forgetHosts());
    after(async () => {
      for (const id of await driver.list()) await driver.terminate(id);
      await driver.deleteFilesystem(filesystem);
      await driver.close();
      await subject.dispose();
      client.close();
    });

    const spec = (changes: Partial<MachineSpec> = {}) => newMachineSpec(client.publicKey, changes);

    async function running(id: string, of: Driver = driver): Promise<Running> {
      let state = await of.inspect(id);
      await until(`${id} runs`, async () => {
        state = await of.inspect(id);
        return state.state === 'running';
      });
      return state as Running;
    }

    async function output(at: Running, command: string): Promise<string> {
      const answer = await client.ssh(at, command);
      assert.equal(answer.code, 0, `${command}: ${answer.stderr}`);
      return answer.stdout.trim();
    }

    test('an id that was never launched is absent, and terminating it is silent', async () => {
      const { id } = spec();
      assert.deepEqual(await driver.inspect(id), { state: 'absent' });
      await driver.terminate(id);
    });

    test('the report says what is isolated and how large the host is', async () => {
      const report = await driver.describe();
      assert.ok(report.isolation.length > 10 && report.network.length > 10);
      assert.ok(report.vcpus > 0 && report.memoryGib > 0 && report.storageGib >= 0);
    });

    test('launching twice at once makes one machine that answers ssh by its host name', async () => {
      const wanted = spec();
      await Promise.all([driver.launch(wanted), driver.launch(wanted)]);
      const state = await running(wanted.id);
      assert.equal(await output(state, 'hostname'), wanted.hostname);
      await driver.launch(wanted);
      assert.deepEqual(await running(wanted.id), state);
      assert.ok((await driver.list()).includes(wanted.id));
      await driver.terminate(wanted.id);
      await driver.terminate(wanted.id);
      assert.deepEqual(await driver.inspect(wanted.id), { state: 'absent' });
      assert.ok(!(await driver.list()).includes(wanted.id));
    });

    test('a restart ends processes and keeps disk, address and host key', async () => {
      const wanted = spec();
      await driver.launch(wanted);
      const first = await running(wanted.id);
      await output(first, 'echo kept > ~/file; setsid sleep 987654 >/dev/null 2>&1 </dev/null &');
      await driver.restart(wanted);
      const second = await running(wanted.id);
      assert.equal(second.ip, first.ip);
      // The client has stored the first host key and refuses any other.
      assert.equal(await output(second, 'cat ~/file'), 'kept');
      assert.equal(await output(second, 'ps -eo args | grep -c "[s]leep 987654" || true'), '0');
      await driver.terminate(wanted.id);
    });

    test('user data runs once, and what it printed is in the boot log', async () => {
      const userData = '#!/bin/sh\necho x >> /home/ubuntu/count\necho "counted by user data"\n';
      const wanted = spec({ userData });
      await driver.launch(wanted);
      await running(wanted.id);
      const ran = async () => (await driver.bootLog(wanted.id)).includes('counted by user data');
      await until('user data ran', ran);
      await driver.restart(wanted);
      const state = await running(wanted.id);
      assert.equal(await output(state, 'wc -l < /home/ubuntu/count'), '1');
      await driver.terminate(wanted.id);
      assert.equal(await driver.bootLog(wanted.id), '');
    });

    test('what a machine uses is measured, and nothing is once it is gone', async () => {
      const wanted = spec();
      assert.equal(await driver.stats(wanted.id), undefined);
      await driver.launch(wanted);
      const state = await running(wanted.id);
      const first = await driver.stats(wanted.id);
      assert.ok(first !== undefined);
      await output(state, 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo burnt');
      const second = await driver.stats(wanted.id);
      assert.ok(second !== undefined);
      const memory = read(second.memoryBytes);
      const limit = wanted.memoryGib * 1024 ** 3;
      assert.ok(memory !== null && memory > 0 && memory <= limit, `${memory} bytes of memory`);
      const [before, after] = [read(first.cpuMs), read(second.cpuMs)];
      assert.ok(before === null || after! > before + 50, `${before} to ${after} ms of CPU time`);
      const [sent, later] = [read(first.network), read(second.network)];
      assert.ok(sent === null || later!.receivedBytes >= sent.receivedBytes);
      const disk = read(second.diskBytes);
      assert.ok(disk === null || disk > 0);
      assert.deepEqual(read(second.gpus), []);
      await driver.terminate(wanted.id);
      assert.equal(await driver.stats(wanted.id), undefined);
    });

    test('a command runs as the user of process 1, and its exit code comes back', async (context) => {
      const run = driver.run;
      const { isolated } = await driver.describe();
      if (run === undefined || !isolated) return context.skip('it runs no commands');
      const wanted = spec();
      const command = ['/bin/sh', '-c', '[ "$(id -u)" = "$(stat -c %u /proc/1)" ] && exit 7'];
      await assert.rejects(run(wanted.id, command), DriverError);
      await driver.launch(wanted);
      await running(wanted.id);
      assert.equal(await run(wanted.id, command), 7);
      assert.equal(await run(wanted.id, ['true']), 0);
      await driver.terminate(wanted.id);
    });

    test('a refused key ends its sessions and opens no more, also after a restart', async () => {
      const wanted = spec();
      await driver.launch(wanted);
      const state = await running(wanted.id);
      const session = client.spawnSsh(state, ['echo in; exec sleep 1000']);
      await once(session.stdout!, 'data');
      const ended = once(session, 'exit');
      const keys = {
        authorizedKeys: [],
        refusedKeys: [client.publicKey.split(' ', 2).join(' ')],
      };
      await driver.refuseKeys({ id: wanted.id, ...keys });
      assert.notEqual((await ended)[0], 0);
      for (const again of [false, true]) {
        if (again) await driver.restart({ ...wanted, ...keys });
        const refused = await client.ssh(await running(wanted.id), 'true');
        assert.equal(refused.code, 255);
        assert.match(refused.stderr, /Permission denied/);
      }
      await driver.terminate(wanted.id);
    });

    test('a filesystem is shared between machines and outlives them', async () => {
      await driver.createFilesystem(filesystem);
      await driver.createFilesystem(filesystem);
      const filesystems = [{ id: filesystem, mountPoint: '/lambda/nfs/shared' }];
      const machines = [spec({ filesystems }), spec({ filesystems })] as const;
      await Promise.all(machines.map((machine) => driver.launch(machine)));
      const [first, second] = [await running(machines[0].id), await running(machines[1].id)];
      await output(first, 'echo from-first > /lambda/nfs/shared/note');
      assert.equal(await output(second, 'cat /lambda/nfs/shared/note'), 'from-first');
      const used = await driver.filesystemUsage(filesystem);
      assert.ok(used === null || used > 0);
      await Promise.all(machines.map(({ id }) => driver.terminate(id)));
      client.forgetHosts();
      const later = spec({ filesystems });
      await driver.launch(later);
      assert.equal(
        await output(await running(later.id), 'cat /lambda/nfs/shared/note'),
        'from-first',
      );
      await driver.terminate(later.id);
    });

    test('a connection reaches what listens inside, and ends with the machine', async (context) => {
      const connect = driver.connect;
      if (connect === undefined) return context.skip('it has no connections');
      const wanted = spec();
      const port = 20_000 + randomInt(10_000);
      await assert.rejects(connect(wanted.id, port), DriverError);
      await driver.launch(wanted);
      const state = await running(wanted.id);
      await assert.rejects(connect(wanted.id, port), DriverError);
      const echo = `busybox nc -ll -p ${port} -e cat`;
      await output(state, `setsid ${echo} >/dev/null 2>&1 </dev/null & echo started`);
      let connection: Duplex | undefined;
      await until('it listens', async () => {
        connection = await connect(wanted.id, port).catch(() => undefined);
        return connection !== undefined;
      });
      const sent = randomBytes(3_000_000);
      connection!.write(sent);
      const received: Buffer[] = [];
      let count = 0;
      for await (const chunk of connection!.iterator({ destroyOnReturn: false })) {
        received.push(chunk);
        count += chunk.length;
        if (count >= sent.length) break;
      }
      assert.ok(Buffer.concat(received).equals(sent));
      const closed = new Promise((resolve) => connection!.once('close', resolve));
      connection!.on('error', () => {}).resume();
      await driver.terminate(wanted.id);
      await closed;
    });

    test('machines of a killed server run on and are served again by the next one', async () => {
      const wanted = spec();
      const { child, lines } = await startChild(subject);
      child.stdin!.write(`${JSON.stringify(wanted)}\n`);
      const [line] = await once(lines, 'line');
      const before = JSON.parse(line) as Running;
      await output(before, 'setsid sleep 123456 >/dev/null 2>&1 </dev/null & echo started');
      await kill(child);

      const next = await subject.create();
      try {
        assert.deepEqual(await running(wanted.id, next), before);
        assert.equal(await output(before, 'ps -eo args | grep -c "[s]leep 123456"'), '1');
        assert.ok((await next.list()).includes(wanted.id));
        await next.terminate(wanted.id);
      } finally {
        await next.close();
      }
    });

    test('a launch that a crash interrupted is finished by launch, or removed by terminate', async () => {
      for (const listed of inSoak([1], [0, 1, 2])) {
        client.forgetHosts();
        const [again, never] = [spec(), spec()];
        const { child } = await startChild(subject);
        for (const wanted of [again, never]) child.stdin!.write(`${JSON.stringify(wanted)}\n`);
        // Killed at once, and when one or both of the machines exist.
        await until(`${listed} machines are listed`, async () => {
          const ids = await driver.list();
          return [again, never].filter(({ id }) => ids.includes(id)).length >= listed;
        });
        await kill(child);
        await driver.launch(again);
        assert.equal(await output(await running(again.id), 'hostname'), again.hostname);
        await driver.terminate(again.id);
        await driver.terminate(never.id);
        const left = await driver.list();
        assert.ok(!left.includes(again.id) && !left.includes(never.id));
      }
    });
  });
}

/** Null if the host can't measure it; the reason must then be a sentence. */
function read<Value>(measured: Measured<Value>): Value | null {
  if ('value' in measured) return measured.value;
  assert.match(measured.unavailable, /^[A-Z].+\.$/);
  return null;
}

async function startChild({ inChild: [module, exported, argument] }: DriverSubject) {
  const program = fileURLToPath(new URL('./driver-process.ts', import.meta.url));
  const argv = [program, module.href, exported, JSON.stringify(argument)];
  const child = spawn(process.execPath, argv, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout! });
  await once(lines, 'line');
  return { child, lines };
}

async function kill(child: ChildProcess) {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
