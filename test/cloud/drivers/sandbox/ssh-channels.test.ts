// The bounds of ssh channels and forwardings, with a forwarder that misbehaves as a tenant's agent may.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import ssh2, { type Connection } from 'ssh2';
import {
  type BoundedChannels,
  boundChannels,
} from '#cloud/drivers/sandbox/ssh/bounded-channels.ts';
import type { Forwarder, IncomingConnection } from '#cloud/drivers/sandbox/ssh/forwarding.ts';
import { serveForwardings } from '#cloud/drivers/sandbox/ssh/forwarding-requests.ts';

const windowBytes = 2 ** 21;
const packetBytes = 32_768;
const neverAnswers = () => new Promise<never>(() => {});

describe('the channels of an ssh connection', { timeout: 60_000 }, () => {
  test('are bounded while the agent has not handed over a forwarded connection', async (t) => {
    const agent = createAgent();
    const { client, protocol, closed, answered } = await connect(t, agent.serve);
    await listen(client, 7000);
    const channel = await agent.offer(client, neverAnswers);
    const data = Buffer.alloc(packetBytes - 1);
    for (let sent = 0; sent < 4 * windowBytes; sent += data.length)
      protocol.channelData(channel.outgoing.id, data);
    assert.equal(await Promise.race([closed, answered()]), 'closed');
  });

  test('close the connection inside if the agent hands it over after the client is gone', async (t) => {
    const agent = createAgent();
    const { client, socket, served } = await connect(t, agent.serve);
    await listen(client, 7000);
    const taken = Promise.withResolvers<PassThrough>();
    await agent.offer(client, () => taken.promise);
    socket.destroy();
    await once(served, 'close');
    const inside = new PassThrough();
    // ssh2 closes the channels of a connection in the same turn of the event loop.
    setImmediate(() => taken.resolve(inside));
    await once(inside, 'close');
  });

  test('give back their places if the connections inside fail while the client sends', async (t) => {
    const agent = createAgent();
    const { client, protocol, answered } = await connect(t, agent.serve);
    await listen(client, 7000);
    for (let time = 0; time < 300; time++) {
      const taken = Promise.withResolvers<PassThrough>();
      const channel = await agent.offer(client, () => taken.promise);
      const inside = new PassThrough({ highWaterMark: 1 });
      protocol.channelData(channel.outgoing.id, Buffer.alloc(1000));
      await answered();
      if (time % 2 === 0) taken.reject(new Error('refused'));
      else {
        taken.resolve(inside);
        await taken.promise;
        inside.destroy();
      }
      channel.resume();
      await once(channel, 'close');
    }
  });

  test('count a listener once, however often its agent died and the client listened again', async (t) => {
    const agent = createAgent();
    const { client } = await connect(t, agent.serve);
    for (let time = 0; time < 40; time++) await listen(client, 7000);
    assert.equal(agent.open(), 1);
    for (let port = 7001; port < 7016; port++) await listen(client, port);
    await assert.rejects(listen(client, 7016));
    await new Promise((resolve) => client.unforwardIn('127.0.0.1', 7000, resolve));
    await listen(client, 7016);
    assert.equal(agent.open(), 16);
  });

  test('send errors between the outputs that were written before them', async (t) => {
    const { protocol } = await connect(t, (connection, { bound }) => {
      connection.on('session', (accept) => {
        accept().once('exec', (acceptExec) => {
          const channel = bound(acceptExec());
          for (let write = 0; write < 32; write++) channel.write(Buffer.alloc(65_536));
          channel.stderr.write('error');
        });
      });
    });
    let printed = 0;
    const printedBeforeError = new Promise<number>((resolve) => {
      protocol._handlers.CHANNEL_EXTENDED_DATA = () => resolve(printed);
    });
    protocol._handlers.CHANNEL_DATA = (_: unknown, id: number, data: Buffer) => {
      printed += data.length;
      protocol.channelWindowAdjust(id, data.length);
    };
    protocol.session(0, packetBytes, packetBytes);
    protocol.exec(0, 'print', false);
    assert.equal(await printedBeforeError, 65_536);
  });
});

/** Returns an agent whose listeners receive the connections that a test offers. */
function createAgent() {
  let receive: ((incoming: IncomingConnection) => void) | undefined;
  let open = 0;
  const forwarder: Forwarder = {
    connect: neverAnswers,
    async listen(_host, port, onConnection) {
      receive = onConnection;
      open += 1;
      return {
        port,
        close() {
          open -= 1;
        },
      };
    },
    close() {},
  };
  return {
    serve: (connection: Connection, channels: BoundedChannels) =>
      serveForwardings(connection, channels, forwarder),
    /** Returns how many listeners were not closed. */
    open: () => open,
    /** Resolves to the client's channel for a connection that `take` hands over. */
    offer(client: ssh2.Client, take: IncomingConnection['take']) {
      return new Promise<ssh2.ClientChannel & { outgoing: { id: number } }>((resolve) => {
        client.once('tcp connection', (_details, accept) => resolve(accept() as never));
        receive?.({ address: '127.0.0.1', port: 1, take });
      });
    },
  };
}

function listen(client: ssh2.Client, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    client.forwardIn('127.0.0.1', port, (error) => (error ? reject(error) : resolve()));
  });
}

interface Internals {
  readonly _sock: Socket;
  readonly _callbacks: (() => void)[];
  // biome-ignore lint/suspicious/noExplicitAny: the package has no types for it
  readonly _protocol: any;
}

/** Connects a client of ssh2's, whose messages can be sent without its own checks, to a server that lets it in. */
async function connect(
  t: TestContext,
  serve: (connection: Connection, channels: BoundedChannels) => void,
) {
  const { private: privateKey } = ssh2.utils.generateKeyPairSync('ed25519');
  const server = new ssh2.Server({ hostKeys: [privateKey] });
  const listener = net.createServer({ noDelay: true }, (socket) => server.injectSocket(socket));
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const client = new ssh2.Client() as ssh2.Client & Internals;
  client.on('error', () => {});
  const closed = new Promise<'closed'>((resolve) => client.on('close', () => resolve('closed')));
  const ready = once(client, 'ready');
  const accepted = once(listener, 'connection');
  const { port } = listener.address() as AddressInfo;
  const connected = once(server, 'connection');
  client.connect({ host: '127.0.0.1', port, username: 'ubuntu', password: 'any' });
  const [serverSocket] = (await accepted) as [Socket];
  t.after(() => {
    serverSocket.destroy();
    listener.close();
  });
  const [served] = (await connected) as [Connection];
  served.on('error', () => {});
  served.on('authentication', (context) => context.accept());
  served.once('ready', () =>
    serve(
      served,
      boundChannels(served, serverSocket, () => serverSocket.destroy()),
    ),
  );
  await ready;
  client.setNoDelay();
  const { _protocol: protocol, _sock: socket, _callbacks: callbacks } = client;
  /** Resolves once the server has processed everything that was sent. */
  const answered = () =>
    new Promise<'answered'>((resolve) => {
      callbacks.push(() => resolve('answered'));
      protocol.ping();
    });
  return { client, protocol, socket, served, closed, answered };
}
