// Machines of one account reach each other by their private addresses; a machine of another account reaches neither,
// whatever its root tries. As root, with real machines.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createSandboxDriver } from '#cloud/drivers/sandbox/sandbox.ts';
import { sshOpen } from '#test/support/cloud/machine-spec.ts';
import {
  createFixture,
  type Fixture,
  type Launched,
  needsNetwork,
} from '#test/support/cloud/sandbox-fixture.ts';
import { run } from '#test/support/conformance/ssh-client.ts';
import { use } from '#test/support/programs.ts';
import { until } from '#test/support/until.ts';

const range = { loopback: '127.79', private: '10.79' };
/** A port that no rule names. */
const port = 6380;

describe('machines of one account', { skip: needsNetwork(), timeout: 300_000 }, () => {
  let fixture: Fixture;
  let head: Launched;
  let worker: Launched;
  let stranger: Launched;
  const inside = async (machine: Launched, command: string) =>
    (await fixture.client.ssh(machine, command)).stdout;
  const serve = async (machine: Launched) => {
    await inside(
      machine,
      `setsid perl -MIO::Socket::INET -e '$l=IO::Socket::INET->new(LocalPort=>${port},Listen=>5,` +
        `ReuseAddr=>1);while($c=$l->accept){print $c $c->peerhost;close $c}' >/dev/null 2>&1 </dev/null &`,
    );
    await until('the server listens', async () => {
      return (await inside(machine, `curl -s --http0.9 -m 1 http://127.0.0.1:${port}/`)) !== '';
    });
  };
  const ask = (from: Launched, to: string, options = '') =>
    inside(from, `curl -s --http0.9 -m 1 ${options} http://${to}:${port}/`);
  const greeting = (from: Launched, to: string) =>
    inside(from, `timeout 2 bash -c 'head -c 7 < /dev/tcp/${to}/22'`);
  /** Retries, because a busy computer may take longer than one request's timeout. */
  const reaches = (from: Launched, to: Launched) =>
    until(`${to.privateIp} is reached`, async () => {
      return (await ask(from, to.privateIp)) === from.privateIp;
    });
  /** All at once: each waits for its timeout. */
  const strangerReachesNothing = async () => {
    const pairs: [Launched, Launched][] = [
      [stranger, head],
      [stranger, worker],
      [head, stranger],
    ];
    const answers = pairs.flatMap(([from, to]) => [
      ask(from, to.privateIp),
      greeting(from, to.privateIp),
    ]);
    assert.deepEqual(await Promise.all(answers), Array(6).fill(''));
  };

  before(async () => {
    fixture = await createFixture({ addresses: range });
    head = await fixture.launch({ account: 'one' });
    worker = await fixture.launch({ account: 'one' });
    // Open to all: only the account keeps it apart.
    const all = { protocol: 'all', portRange: null, sourceNetwork: '0.0.0.0/0' } as const;
    stranger = await fixture.launch({ account: 'other', firewall: [all] });
    for (const machine of [head, worker, stranger]) await serve(machine);
  });
  after(() => fixture?.close());

  test('reach each other on ports that no rule names', async () => {
    await reaches(head, worker);
    await reaches(worker, head);
    const { code } = await fixture.client.ssh(head, `ping -c 1 -W 2 ${worker.privateIp}`);
    if (use('ping').length > 0) assert.equal(code, 0);
  });

  test('reach each other’s ssh server, whatever source its rule names', async () => {
    await fixture.driver.setFirewall({
      ...worker.spec,
      firewall: [{ ...sshOpen, sourceNetwork: '127.0.0.0/8' }],
    });
    await until('a greeting', async () => (await greeting(head, worker.privateIp)) === 'SSH-2.0');
    const key = await readFile(path.join(fixture.client.folder, 'key'), 'utf8');
    await inside(head, `umask 77; cat > key <<'END'\n${key}\nEND`);
    const command = `ssh -i key -o StrictHostKeyChecking=no -o ConnectTimeout=9 ubuntu@${worker.privateIp}`;
    assert.equal(
      await inside(head, `${command} 'echo $SSH_CONNECTION | cut -d" " -f1'`),
      `${head.privateIp}\n`,
    );
  });

  test('are not reached from another account, nor reach it', strangerReachesNothing);

  test('are not reached from a spoofed address, nor over IPv6', async () => {
    const spoof = head.privateIp;
    await inside(stranger, `sudo ip addr add ${spoof}/32 dev eth0`);
    assert.equal(await ask(stranger, worker.privateIp, `--interface ${spoof}`), '');
    await inside(stranger, `sudo ip addr del ${spoof}/32 dev eth0`);
    const device = `mr-${stranger.id.slice(0, 12)}`;
    const { stdout } = await run('ip', ['-6', '-o', 'addr', 'show', 'dev', device]);
    const host = /inet6 (fe80\S+)\//.exec(stdout)?.[1];
    if (host !== undefined) {
      const { code } = await fixture.client.ssh(
        stranger,
        `timeout 2 bash -c '> /dev/tcp/${host}%eth0/22'`,
      );
      assert.notEqual(code, 0);
    }
  });

  test('are not reached from outside with the address of a sibling', async (context) => {
    // A host next to this one that has taken the head's address.
    const space = `mrs${process.pid}`;
    const commands = [
      `ip netns add ${space}`,
      `ip link add ${space} type veth peer name eth0 netns ${space}`,
      `ip addr add 198.51.100.5/30 dev ${space}`,
      `ip link set ${space} up`,
      `echo 1 > /proc/sys/net/ipv4/conf/${space}/forwarding`,
      `ip -n ${space} addr add 198.51.100.6/30 dev eth0`,
      `ip -n ${space} addr add ${head.privateIp}/32 dev eth0`,
      `ip -n ${space} link set eth0 up`,
      `ip -n ${space} route add default via 198.51.100.5`,
    ];
    context.after(() => run('sh', ['-c', `ip netns del ${space}; ip link del ${space}`]));
    for (const command of commands) {
      const answer = await run('sh', ['-c', command]);
      assert.equal(answer.code, 0, `${command}: ${answer.stderr}`);
    }
    // The packet that would reach the worker is seen by the counter of a table behind its rules.
    const table = `inet mrs${process.pid}`;
    await run('nft', [
      `table ${table} { chain seen { type filter hook postrouting priority 50; oifname "mr-${worker.id.slice(0, 12)}" tcp dport ${port} counter; }; }`,
    ]);
    context.after(() => run('nft', ['delete', 'table', ...table.split(' ')]));
    const seen = async () =>
      Number(
        /packets (\d+)/.exec((await run('nft', ['list', 'table', ...table.split(' ')])).stdout)![1],
      );
    await reaches(head, worker);
    const before = await seen();
    assert.notEqual(before, 0);
    await run('ip', [
      ...['netns', 'exec', space, 'curl', '-s', '-m', '1', '--interface', head.privateIp],
      `http://${worker.privateIp}:${port}/`,
    ]);
    assert.equal(await seen(), before);
  });

  test('still do after a change of rules and a restart of one of them', async () => {
    await fixture.driver.setFirewall({ ...head.spec, firewall: [] });
    await reaches(worker, head);
    await fixture.driver.setFirewall({ ...head.spec, firewall: [sshOpen] });
    await fixture.driver.restart(worker.spec);
    await serve(worker);
    await reaches(head, worker);
    await reaches(worker, head);
    await strangerReachesNothing();
  });

  test('still do after a restart of the server; an older machine joins with its rules', async (context) => {
    const late = await fixture.launch({ account: 'one' });
    await serve(late);
    await fixture.driver.close();
    // As an earlier version wrote it.
    const file = path.join(fixture.dataDir, 'machines', late.id, 'machine.json');
    const record = JSON.parse(await readFile(file, 'utf8'));
    delete record.spec.account;
    await writeFile(file, JSON.stringify(record));
    const next = await createSandboxDriver({ dataDir: fixture.dataDir, addresses: range });
    context.after(() => next.close());
    const { account: _, ...former } = late.spec;
    await next.setFirewall(former);
    assert.equal(await ask(late, head.privateIp), '');
    await reaches(head, worker);
    await next.setFirewall(late.spec);
    await reaches(late, head);
    await reaches(head, late);
    await next.terminate(late.id);
    await reaches(worker, head);
    await strangerReachesNothing();
  });
});
