// The ssh server of a sandbox, used by stock OpenSSH clients.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { spawn as spawnTerminal } from '@lydell/node-pty';
import ssh2 from 'ssh2';
import { createSandboxDriver } from '#cloud/drivers/sandbox/sandbox.ts';
import { sshOpen } from '#test/support/cloud/machine-spec.ts';
import {
  createFixture,
  type Fixture,
  type Launched,
  noSsh,
} from '#test/support/cloud/sandbox-fixture.ts';
import { isRoot } from '#test/support/cloud/sandbox-programs.ts';
import { createSshClient, run } from '#test/support/conformance/ssh-client.ts';
import { needs } from '#test/support/programs.ts';
import { until } from '#test/support/until.ts';

describe('ssh into a sandbox', { skip: noSsh || needs('scp', 'pgrep'), timeout: 300_000 }, () => {
  let fixture: Fixture;
  let machine: Launched;
  const ssh = (...args: string[]) => fixture.client.ssh(machine, ...args);

  before(async () => {
    fixture = await createFixture();
    machine = await fixture.launch();
  });
  after(() => fixture.close());

  test('the server listens on port 22 where permitted, otherwise on 2222', () => {
    assert.equal(machine.sshPort, isRoot ? 22 : 2222);
    assert.match(machine.ip, /^127\.77\.\d+\.\d+$/);
  });

  test('a command receives its input, and its output, errors and status are returned', async () => {
    const answer = await fixture.client.sshWithInput(machine, 'in', 'cat; echo bad >&2; exit 7');
    assert.deepEqual(answer, { code: 7, stdout: 'in', stderr: 'bad\n' });
  });

  test('a command killed by a signal is reported with that signal', async () => {
    const answer = await ssh('-v', 'kill -TERM $$');
    assert.equal(answer.code, 255);
    const debug = await fixture.client.run('ssh', [
      ...fixture.client.options(machine).map((option) => option.replace('=ERROR', '=DEBUG1')),
      `ubuntu@${machine.ip}`,
      'kill -TERM $$',
    ]);
    assert.match(debug.stderr, /exit-signal/);
  });

  test('the user is ubuntu, in its home, with its own environment', async () => {
    const answer = await ssh(
      '-o',
      'SetEnv=FOO="b a r"',
      'id -un; pwd; echo "$FOO"; env | grep -c ^npm',
    );
    assert.equal(answer.stdout, 'ubuntu\n/home/ubuntu\nb a r\n0\n');
  });

  test('a variable that could affect programs of the host stays inside the machine', async () => {
    const answer = await ssh('-o', 'SetEnv=LD_PRELOAD=/nonexistent.so', 'echo "$LD_PRELOAD"');
    assert.equal(answer.stdout, '/nonexistent.so\n');
  });

  test('a terminal has a name inside and follows the size of its window', async () => {
    const argv = [...fixture.client.options(machine), '-tt', `ubuntu@${machine.ip}`];
    const terminal = spawnTerminal('ssh', argv, { cols: 100, rows: 30, env: process.env });
    let screen = '';
    terminal.onData((data) => {
      screen += data;
    });
    const exit = new Promise<number>((resolve) =>
      terminal.onExit(({ exitCode }) => resolve(exitCode)),
    );
    terminal.write('echo "tty=$(tty) size=$(stty size) term=$TERM"\r');
    await until('the first size', () => screen.includes('size=30 100'));
    assert.match(screen, /tty=\/dev\/pts\/\d+ /);
    terminal.resize(120, 40);
    await until('the second size', () => {
      terminal.write('echo "now $(stty size)"\r');
      return screen.includes('now 40 120');
    });
    terminal.write('exit 5\r');
    assert.equal(await exit, 5);
  });

  test('a command in a terminal ends with its client; a background process does not', async () => {
    const child = fixture.client.spawnSsh(machine, ['-tt', 'sleep 424242'], { stdio: 'pipe' });
    const count = async (what: string) => (await ssh(`pgrep -fc "^${what}" || true`)).stdout.trim();
    await until('it runs', async () => (await count('sleep 424242')) === '1');
    await ssh('setsid sleep 434343 >/dev/null 2>&1 </dev/null &');
    child.kill();
    await until('it ended', async () => (await count('sleep 424242')) === '0');
    assert.equal(await count('sleep 434343'), '1');
  });

  test('scp keeps every byte in both of its protocols', async () => {
    const file = path.join(fixture.client.folder, 'file');
    await writeFile(file, Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => index * 7)));
    for (const [index, flag] of ['-s', '-O'].entries()) {
      const options = ['-q', flag, ...fixture.client.options(machine)];
      const there = `ubuntu@${machine.ip}:copy-${index}`;
      assert.equal((await run('scp', [...options, file, there])).code, 0);
      assert.equal((await run('scp', [...options, there, `${file}.back`])).code, 0);
      assert.ok((await readFile(file)).equals(await readFile(`${file}.back`)));
    }
  });

  test('sftp lists, renames and removes', { skip: needs('sftp') }, async () => {
    await ssh('mkdir -p folder && echo one > folder/one');
    const batch =
      'ls folder\nrename folder/one folder/two\nchmod 600 folder/two\nls -l folder\nrm folder/two\n';
    const args = ['-q', '-b', '-', ...fixture.client.options(machine), `ubuntu@${machine.ip}`];
    const answer = await run('sftp', args, batch);
    assert.equal(answer.code, 0, answer.stderr);
    assert.match(answer.stdout, /folder\/one[\s\S]*-rw-------[\s\S]*folder\/two/);
    assert.equal((await ssh('ls folder')).stdout, '');
  });

  test('rsync copies a tree both ways', { skip: needs('rsync') }, async () => {
    const tree = path.join(fixture.client.folder, 'tree');
    await mkdir(path.join(tree, 'inner'), { recursive: true });
    await writeFile(path.join(tree, 'inner', 'file'), 'text');
    const shell = ['-a', '-e', ['ssh', ...fixture.client.options(machine)].join(' ')];
    const there = await run('rsync', [...shell, `${tree}/`, `ubuntu@${machine.ip}:tree`]);
    assert.equal(there.code, 0, there.stderr);
    await run('rsync', [...shell, `ubuntu@${machine.ip}:tree/`, `${tree}-back`]);
    assert.equal(await readFile(path.join(`${tree}-back`, 'inner', 'file'), 'utf8'), 'text');
  });

  test('-L and -D connect from inside, so that localhost is the machine', {
    skip: needs('curl'),
  }, async () => {
    await startEcho(4321);
    const [local, socks] = [await freePort(), await freePort()];
    const forwards = ['-N', '-L', `${local}:localhost:4321`, '-D', `${socks}`];
    const child = fixture.client.spawnSsh(machine, [...forwards, '-n']);
    try {
      await until('-L answers', async () => (await echo(local, 'by L')) === 'by L');
      const curl = [
        '-s',
        '--max-time',
        '5',
        '--socks5-hostname',
        `127.0.0.1:${socks}`,
        '--http0.9',
      ];
      const answer = await run('curl', [...curl, 'http://localhost:4321/by-D']);
      assert.match(answer.stdout, /by-D/);
    } finally {
      child.kill();
    }
  });

  test("-L can't reach the host's own loopback", async () => {
    const server = createServer((_request, response) => response.end('secret of the host'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const answer = await ssh('-W', `127.0.0.1:${port}`, '-n');
    assert.notEqual(answer.code, 0);
    assert.doesNotMatch(answer.stdout, /secret/);
    server.close();
  });

  test('-R listens inside and forwards connections to the client', {
    skip: needs('curl'),
  }, async () => {
    const server = createServer((_request, response) => response.end('from the client'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const child = fixture.client.spawnSsh(machine, ['-N', '-R', `5555:127.0.0.1:${port}`, '-n']);
    try {
      await until('-R answers', async () => {
        const answer = await ssh('curl -s --max-time 5 http://localhost:5555/');
        return answer.stdout === 'from the client';
      });
    } finally {
      child.kill();
      server.close();
    }
  });

  test('-R leaves nothing inside, even if no connection was made', async () => {
    const forward = ['-o', 'ExitOnForwardFailure=yes', '-R', '5556:127.0.0.1:9'];
    assert.equal((await ssh(...forward, 'true')).code, 0);
    const left = 'pgrep -f "^/run/machine/node" || true';
    await until('the agent has ended', async () => (await ssh(left)).stdout === '');
    assert.equal((await ssh(...forward, 'true')).code, 0);
  });

  test('agent forwarding is refused and the session continues', async () => {
    const answer = await ssh('-A', 'echo "agent:$SSH_AUTH_SOCK"');
    assert.deepEqual([answer.code, answer.stdout], [0, 'agent:\n']);
  });

  test('another key, another user and passwords are refused', async () => {
    const stranger = createSshClient();
    try {
      assert.match((await stranger.ssh(machine, 'true')).stderr, /Permission denied \(publickey\)/);
    } finally {
      stranger.close();
    }
    const options = fixture.client.options(machine);
    for (const user of ['root', 'nobody']) {
      const answer = await run('ssh', [...options, `${user}@${machine.ip}`, 'true']);
      assert.match(answer.stderr, /Permission denied \(publickey\)/);
    }
  });

  test('a key that the tenant adds inside may log in; a link out of the machine is not followed', async () => {
    const friend = createSshClient();
    const outside = path.join(friend.folder, 'authorized_keys');
    await writeFile(outside, `${friend.publicKey}\n`, { mode: 0o644 });
    await ssh(`ln -sf ${outside} .ssh/authorized_keys`);
    assert.equal((await friend.ssh(machine, 'true')).code, 255);
    await fixture.client.sshWithInput(
      machine,
      `${friend.publicKey}\n`,
      'rm .ssh/authorized_keys; cat > .ssh/authorized_keys',
    );
    assert.equal((await friend.ssh(machine, 'true')).code, 0);
    friend.close();
  });

  test('a terminal without ssh works the same way', async () => {
    const terminal = await fixture.driver.attachTerminal(machine.id, { columns: 90, rows: 20 });
    let screen = '';
    terminal!.onData((data) => {
      screen += data;
    });
    const exit = new Promise<number>((resolve) => terminal!.onExit(({ code }) => resolve(code)));
    terminal!.write(Buffer.from('echo "$(stty size) $(id -un)"; exit 3\r'));
    assert.equal(await exit, 3);
    assert.match(screen, /20 90 ubuntu/);
    assert.equal(
      await fixture.driver.attachTerminal('0'.repeat(32), { columns: 9, rows: 9 }),
      undefined,
    );
  });

  test('a client that no rule allows is disconnected before the greeting; open sessions continue', async () => {
    const { driver } = fixture;
    const child = fixture.client.spawnSsh(machine, ['cat'], { stdio: 'pipe' });
    const answerTo = async (text: string) => {
      const answer = once(child.stdout!, 'data');
      child.stdin!.write(text);
      return String(await answer);
    };
    assert.equal(await answerTo('inside'), 'inside');
    try {
      await driver.setFirewall({
        ...machine.spec,
        firewall: [{ ...sshOpen, sourceNetwork: '192.0.2.0/24' }],
      });
      assert.equal(await greeting(machine), '');
      assert.equal((await ssh('true')).code, 255);
      assert.equal(await answerTo('still here'), 'still here');
      const terminal = await driver.attachTerminal(machine.id, { columns: 90, rows: 20 });
      terminal!.write(Buffer.from('exit 4\r'));
      const code = await new Promise((resolve) => terminal!.onExit((exit) => resolve(exit.code)));
      assert.equal(code, 4);
    } finally {
      child.kill();
      await driver.setFirewall({ ...machine.spec, firewall: [sshOpen] });
    }
    assert.match(await greeting(machine), /^SSH-2\.0-/);
  });

  test('the rules for ssh survive a restart of the server', async () => {
    const own = await createFixture();
    const closed = await own.launch({ firewall: [] });
    assert.equal(await greeting(closed), '');
    await own.driver.close();
    const next = await createSandboxDriver({ dataDir: own.dataDir });
    try {
      assert.equal(await greeting(closed), '');
      await next.setFirewall({
        ...closed.spec,
        firewall: [{ ...sshOpen, sourceNetwork: '127.0.0.0/8' }],
      });
      assert.equal((await own.client.ssh(closed, 'true')).code, 0);
    } finally {
      await next.close();
      await own.close();
    }
  });

  test('a command that the kernel refuses ends with a status and leaves the server running', async () => {
    const privateKey = await readFile(path.join(fixture.client.folder, 'key'), 'utf8');
    const connection = new ssh2.Client();
    connection.connect({ host: machine.ip, port: machine.sshPort, username: 'ubuntu', privateKey });
    await once(connection, 'ready');
    for (const command of ['echo a\0b', 'x'.repeat(30_000)]) {
      for (const pty of [false, true]) {
        const code = await new Promise((resolve, reject) => {
          connection.exec(command, { pty }, (error, channel) => {
            if (error) return reject(error);
            channel.on('exit', (status) => resolve(status)).resume();
            return channel.stderr.resume();
          });
        });
        assert.notEqual(code, undefined, `${command.length} ${pty}`);
      }
    }
    await new Promise<void>((resolve) => {
      connection.exec('true', { env: { BAD: 'a\0b' } }, (_error, channel) => {
        channel.on('close', () => resolve()).resume();
      });
    });
    connection.end();
    assert.equal((await ssh('echo alive')).stdout, 'alive\n');
  });

  test('a signal from the client reaches the command and its children', async () => {
    const privateKey = await readFile(path.join(fixture.client.folder, 'key'), 'utf8');
    const connection = new ssh2.Client();
    connection.connect({ host: machine.ip, port: machine.sshPort, username: 'ubuntu', privateKey });
    await once(connection, 'ready');
    const exit = await new Promise((resolve, reject) => {
      connection.exec('trap "exit 9" USR1; echo up; sleep 100 & wait', (error, channel) => {
        if (error) return reject(error);
        channel.once('data', () => channel.signal('USR1'));
        return channel.on('exit', (status) => resolve(status));
      });
    });
    assert.equal(exit, 9);
    connection.end();
  });

  test('a client that does not speak ssh is disconnected without harm', async () => {
    const visitor = net.connect(machine.sshPort, machine.ip);
    await once(visitor, 'connect');
    visitor.resume();
    visitor.write('GET / HTTP/1.1\r\n\r\n');
    await once(visitor, 'close');
    assert.equal((await ssh('true')).code, 0);
  });

  /** Starts an echo server inside the machine. */
  async function startEcho(port: number) {
    const program =
      `use IO::Socket::INET; $SIG{CHLD}="IGNORE"; $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1", ` +
      `LocalPort => ${port}, Listen => 9, ReuseAddr => 1) or die; while ($c = $l->accept) { ` +
      `if (fork) { close $c; next } sysread($c, $d, 4096); syswrite($c, $d); exit }`;
    await ssh(`setsid perl -e '${program}' >/dev/null 2>&1 </dev/null &`);
  }
});

/** Returns what the ssh server sends to a client that sends nothing; empty if it disconnects at once. */
async function greeting({ ip, sshPort }: Launched): Promise<string> {
  const visitor = net.connect(sshPort, ip);
  visitor.end();
  visitor.on('error', () => {});
  let said = '';
  visitor.on('data', (chunk) => {
    said += chunk;
    visitor.destroy();
  });
  await new Promise((resolve) => visitor.on('close', resolve));
  return said;
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function echo(port: number, message: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(message));
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('error', () => resolve(''));
    socket.on('close', () => resolve(answer));
  });
}
