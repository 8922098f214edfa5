// A TCP connection to a port inside a machine, through the daemon's exec: bash connects, and its terminal carries the
// bytes unchanged. It needs no network between this server and the machine, and works for containers and virtual
// machines. The image must have bash and stty.

import { Duplex } from 'node:stream';
import { DriverError, type Terminal } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { openInstanceTerminal } from './terminal.ts';

/**
 * Prints a plus sign once it is connected. Both directions end with the connection. The copy in the
 * background would read /dev/null without a descriptor of its own. The daemon may drop the output
 * of a program that has ended, so it waits.
 */
const relay = `stty raw -echo || exit 1
exec 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$0" || exit 1
printf +
exec 4<&0
cat <&4 >&3 &
cat <&3
sleep 1
kill $!`;

const connectTimeoutMs = 20_000;

/** Throws DriverError if nothing listens there. */
export async function connectInside(
  client: DaemonClient,
  instancePath: string,
  port: number,
): Promise<Duplex> {
  const command = ['bash', '-c', relay, `${port}`];
  const terminal = await openInstanceTerminal(client, instancePath, {
    columns: 80,
    rows: 24,
    command,
  });
  const stream = toStream(terminal);
  const isConnected = await waitForPlus(terminal, stream);
  if (isConnected) return stream;
  stream.destroy();
  throw new DriverError('unavailable', `Nothing listens at port ${port} of the machine.`);
}

function toStream(terminal: Terminal): Duplex {
  let written: (() => void) | null = null;
  terminal.onDrain(() => {
    written?.();
    written = null;
  });
  const stream = new Duplex({
    allowHalfOpen: false,
    read: () => terminal.resume(),
    write(bytes: Buffer, _encoding, done) {
      if (terminal.write(bytes)) done();
      else written = done;
    },
    destroy(error, done) {
      terminal.kill();
      done(error);
    },
  });
  stream.on('error', () => {});
  return stream;
}

/** Passes on what arrives after the plus sign. Resolves to false if the program ends without one. */
function waitForPlus(terminal: Terminal, stream: Duplex): Promise<boolean> {
  let isConnected = false;
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, connectTimeoutMs, false);
    terminal.onData((data) => {
      const bytes = isConnected ? data : data.subarray(1);
      isConnected ||= data.toString('latin1', 0, 1) === '+';
      clearTimeout(timer);
      resolve(isConnected);
      if (bytes.length > 0 && !stream.push(bytes)) terminal.pause();
    });
    terminal.onExit(() => {
      clearTimeout(timer);
      resolve(false);
      if (!stream.destroyed) stream.push(null);
    });
  });
}
