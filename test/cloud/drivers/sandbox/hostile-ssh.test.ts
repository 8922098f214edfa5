// What an ssh client may do to the server that holds a key of the machine and breaks the protocol's rules.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import net, { type AddressInfo, type Socket } from 'node:net';
import path from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import ssh2 from 'ssh2';
import { Logins, loginBounds } from '#cloud/drivers/sandbox/ssh/logins.ts';
import { PacedSocket } from '#cloud/drivers/sandbox/ssh/paced-socket.ts';
import { FairTurns } from '#lib/async/fair-turns.ts';
import {
  createFixture,
  type Fixture,
  type Launched,
  noSsh,
} from '#test/support/cloud/sandbox-fixture.ts';
import { needs } from '#test/support/programs.ts';
import { until } from '#test/support/until.ts';

/** A port that neither accepts nor refuses: its queue has room for one connection, which it makes itself. */
const unanswering = `
  my $at = sockaddr_in(5001, INADDR_LOOPBACK); $| = 1;
  socket(S, PF_INET, SOCK_STREAM, 0); bind(S, $at); listen(S, 0);
  socket(C, PF_INET, SOCK_STREAM, 0); connect(C, $at);
  print "full"; sleep 600;`;

const windowBytes = 2 ** 21;
const packetBytes = 32_768;

test('of many sources, the more wait to log in the more new ones are dropped', () => {
  const { dropsFrom, max } = loginBounds;
  let chance = 0.999_999;
  const logins = new Logins(() => chance);
  const leave: (() => void)[] = [];
  const enter = () => {
    const left = logins.enter(`10.0.${leave.length}.1`);
    if (left !== null) leave.push(left);
    return left !== null;
  };
  for (let at = 0; at < max; at++) assert(enter(), `${at} wait`);
  assert(!enter(), 'there is no place left');
  chance = 0;
  while (leave.length >= dropsFrom) {
    assert(!enter(), `${leave.length} wait`);
    leave.pop()?.();
  }
  assert(enter());
});

describe('an ssh client that breaks the rules', {
  skip: noSsh || needs('pgrep', 'perl'),
  timeout: 300_000,
}, () => {
  let fixture: Fixture;
  let machine: Launched;
  const ssh = async (command: string) => (await fixture.client.ssh(machine, command)).stdout.trim();

  before(async () => {
    fixture = await createFixture();
    machine = await fixture.launch();
  });
  after(() => fixture.close());

  test('keeps no one out by connecting and saying nothing', async (t) => {
    // Machines have addresses of the loopback network or of a bridge here, which the host has, too.
    const localAddress = machine.ip.startsWith('127.') ? '127.9.9.9' : undefined;
    const silent = Array.from({ length: 200 }, () => {
      const socket = net.connect({ host: machine.ip, port: machine.sshPort, localAddress });
      t.after(() => socket.destroy());
      return socket.on('error', () => {});
    });
    const kept = new Set(silent);
    for (const socket of silent) socket.once('close', () => kept.delete(socket));
    await until('the others are dropped', () => kept.size <= loginBounds.perSource);
    assert.equal(await ssh('echo alive'), 'alive');
    assert.equal(kept.size, loginBounds.perSource);
  });

  for (const size of [0, 1, 1000])
    test(`is disconnected if it takes packets of ${size} bytes, which would cost a packet each`, async () => {
      const client = await connect();
      client.protocol.session(0, windowBytes, size);
      client.protocol.exec(0, 'head -c 300000 /dev/zero', false);
      await client.closed;
      assert.equal(await ssh('echo alive'), 'alive');
    });

  test('is disconnected if it sends more than its window', async () => {
    const client = await connect();
    client.protocol.session(0, windowBytes, packetBytes);
    client.protocol.exec(0, 'sleep 1000', false);
    const data = Buffer.alloc(packetBytes - 1);
    // The window is no multiple of it, so what is left of the window is never exactly zero, which ssh2 would notice.
    for (let sent = 0; sent < 4 * windowBytes; sent += data.length)
      client.protocol.channelData(0, data);
    await client.closed;
  });

  test('gets no more output than it reads, however large its window', async () => {
    const megabytes = 64;
    const print = (file: string) =>
      `for i in $(seq ${megabytes}); do head -c 1M /dev/zero; echo >> ${file}; done`;
    const client = await connect();
    client.protocol.session(0, 2 ** 32 - 1, packetBytes);
    client.protocol.exec(0, print('unread'), false);
    client.socket.pause();
    await until('it prints', async () => Number(await ssh('cat unread | wc -l')) > 0);
    // Whatever the first client could make the server hold, it holds by the time the second has read everything.
    await fixture.client.ssh(machine, `(${print('read')}) >/dev/null; cat read`);
    await fixture.client.ssh(machine, print('read'));
    const printed = Number(await ssh('cat unread | wc -l'));
    assert(printed < megabytes / 2, `${printed} MB were printed`);
    client.socket.resume();
    await until(
      'it reads the rest',
      async () => (await ssh('cat unread | wc -l')) === `${megabytes}`,
    );
    client.socket.destroy();
  });

  test('runs one program in a session', async () => {
    const client = await connect();
    client.protocol.session(0, windowBytes, packetBytes);
    for (const number of [1, 2, 3])
      client.protocol.exec(0, `touch ran-${number}; sleep 100`, false);
    await until('the first one runs', async () => (await ssh('ls ran-*')) === 'ran-1');
    await client.answered();
    assert.equal(await ssh('ls ran-*'), 'ran-1');
    client.socket.destroy();
  });

  test('gets no more sessions by closing some without a program', async () => {
    const client = await connect();
    for (let id = 0; id < 100; id++) {
      client.protocol.session(id, windowBytes, packetBytes);
      client.protocol.channelClose(id);
      client.protocol.channelClose(id);
    }
    await client.answered();
    assert.deepEqual(client.openings, { confirmed: 32, refused: 68 });
    client.socket.destroy();
  });

  test('has a bound on forwardings that wait for an answer', async () => {
    await ssh(
      `nohup perl -MSocket -e '${unanswering}' > full 2>&1 & until grep full full; do sleep 0.1; done`,
    );
    const client = await connect();
    const target = { dstIP: '127.0.0.1', dstPort: 5001, srcIP: '127.0.0.1', srcPort: 1 };
    for (let id = 0; id < 300; id++) {
      client.protocol.directTcpip(id, windowBytes, packetBytes, target);
    }
    await client.answered();
    assert.deepEqual(client.openings, { confirmed: 0, refused: 300 - 256 });
    client.socket.destroy();
  });

  test('leaves no terminal behind whose program does not read', async () => {
    const client = await connect();
    client.protocol.session(0, windowBytes, packetBytes);
    client.protocol.pty(0, 24, 80, 0, 0, 'xterm', null, false);
    client.protocol.exec(0, 'sleep 454545', false);
    const count = () => ssh('pgrep -fc "^sleep 454545" || true');
    await until('it runs', async () => (await count()) === '1');
    for (let sent = 0; sent < 1_000_000; sent += packetBytes) {
      client.protocol.channelData(0, Buffer.alloc(packetBytes, 'x'));
    }
    await client.answered();
    client.socket.destroy();
    await until('it ended', async () => (await count()) === '0');
  });

  test('gets its output and its errors whole, also while keys are exchanged anew', async () => {
    const print = 'head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2';
    const { code, stdout, stderr } = await fixture.client.ssh(
      machine,
      '-o',
      'RekeyLimit=1M',
      print,
    );
    assert.deepEqual([code, stdout.length, stderr.length], [0, 20_000_000, 20_000_000]);
  });

  /** A client of ssh2's whose messages are sent as they are, without its own checks. */
  async function connect() {
    const client = new ssh2.Client() as ssh2.Client & Internals;
    client.on('error', () => {});
    const closed = new Promise<void>((resolve) => client.on('close', () => resolve()));
    const privateKey = await readFile(path.join(fixture.client.folder, 'key'), 'utf8');
    client.connect({ host: machine.ip, port: machine.sshPort, username: 'ubuntu', privateKey });
    await once(client, 'ready');
    const { _protocol: protocol, _sock: socket, _callbacks: callbacks } = client;
    const openings = { confirmed: 0, refused: 0 };
    protocol._handlers.CHANNEL_OPEN_CONFIRMATION = () => {
      openings.confirmed += 1;
    };
    protocol._handlers.CHANNEL_OPEN_FAILURE = () => {
      openings.refused += 1;
    };
    /** Resolves once the server has processed everything that was sent. */
    const answered = () =>
      new Promise<void>((resolve) => {
        callbacks.push(() => resolve());
        protocol.ping();
      });
    return { protocol, socket, closed, openings, answered };
  }
});

interface Internals {
  readonly _sock: Socket;
  readonly _callbacks: (() => void)[];
  // biome-ignore lint/suspicious/noExplicitAny: the package has no types for it
  readonly _protocol: any;
}

describe('the connection of an ssh client', () => {
  test('ends if the client sends and does not read the answers', async (t) => {
    const { paced, client } = await pair(t, new FairTurns());
    paced.on('error', () => {});
    paced.on('data', () => paced.write(Buffer.alloc(65_536)));
    client.pause();
    client.on('error', () => {});
    while (!client.destroyed && !paced.destroyed) {
      client.write(Buffer.alloc(65_536));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert(paced.destroyed);
  });

  test('takes turns with those of other machines and with everything else', async (t) => {
    const turns = new FairTurns();
    const flood = await pair(t, turns, 'flood');
    const order: string[] = [];
    let loops = 0;
    flood.paced.on('data', () => {
      order.push(`flood ${loops}`);
      // What ssh2 takes to decipher many packets.
      for (const end = performance.now() + 6; performance.now() < end; );
    });
    const other = await pair(t, turns, 'other');
    other.paced.on('data', () => order.push('other'));
    const count = () => {
      loops += 1;
      if (!flood.paced.destroyed) setImmediate(count);
    };
    setImmediate(count);
    flood.client.write(Buffer.alloc(4_000_000));
    await until('the flood arrives', () => order.length > 5);
    other.client.write('x');
    await until('the other is served', () => order.includes('other'));
    const floods = order.filter((entry) => entry !== 'other');
    assert.equal(new Set(floods).size, floods.length, 'at most one piece each turn of the loop');
  });

  test('delivers all input of a client that closes while pieces wait for their turn', async (t) => {
    const steps: (() => void)[] = [];
    class ManualTurns extends FairTurns {
      override add(_caller: string, step: () => void) {
        steps.push(step);
      }
    }
    const { paced, client } = await pair(t, new ManualTurns());
    let received = 0;
    paced.on('data', (piece: Buffer) => {
      received += piece.length;
    });
    client.end(Buffer.alloc(40_000));
    while (!paced.destroyed) {
      await loops(3);
      steps.shift()?.();
    }
    assert.equal(received, 40_000);
  });

  test('keeps the input of a client that closes until a slow reader takes it', async (t) => {
    const { paced, client } = await pair(t, new FairTurns());
    client.end(Buffer.alloc(40_000));
    let received = 0;
    for await (const piece of paced) {
      received += piece.length;
      await loops(10);
    }
    assert.equal(received, 40_000);
  });

  /** Lets the event loop turn this often, so that what the client sent arrives. */
  async function loops(count: number) {
    for (let loop = 0; loop < count; loop++) await new Promise((resolve) => setImmediate(resolve));
  }

  async function pair(t: TestContext, turns: FairTurns, caller = 'machine') {
    const server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [socket] = (await once(server, 'connection')) as [Socket];
    const paced = new PacedSocket(socket, turns, caller);
    t.after(() => {
      paced.destroy();
      client.destroy();
    });
    server.close();
    return { paced, client };
  }
});
