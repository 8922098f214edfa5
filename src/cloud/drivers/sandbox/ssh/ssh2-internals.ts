// What this driver needs of ssh2 and ssh2's interface does not offer. Each field is checked before
// it is used: a release that renames one must fail here, instead of leaving a bound unchecked.

import assert from 'node:assert';
import type { Duplex } from 'node:stream';
import type { Connection, ServerChannel } from 'ssh2';

/** Where ssh2 keeps a write that waits for the window. It goes on with any that is there, also an earlier one. */
const unfinished = ['_chunk', '_chunkcb', '_chunkErr', '_chunkcbErr'] as const;

/** A channel with what ssh2's types leave out. */
export type Ssh2Channel = ServerChannel & {
  /** Bytes that the client may still send. */
  readonly incoming: { readonly window: number };
  /** Maximum bytes of a packet to the client, as the client wants it. */
  readonly outgoing: { readonly packetSize: number };
};

export function toSsh2Channel(stream: Duplex): Ssh2Channel {
  const channel = stream as unknown as Ssh2Channel;
  assert(typeof channel.incoming.window === 'number', 'ssh2 has no window');
  assert(typeof channel.outgoing.packetSize === 'number', 'ssh2 has no packet size');
  for (const name of unfinished) assert(name in channel, `ssh2 has no ${name}`);
  return channel;
}

/** Makes ssh2 forget a write that has ended after it waited for the window. */
export function forgetUnfinished(channel: Ssh2Channel): void {
  const fields = channel as Partial<Record<(typeof unfinished)[number], unknown>>;
  for (const name of unfinished) fields[name] = undefined;
}

/** Returns whether keys are being exchanged, while ssh2 queues what is sent. */
export function watchKeyExchange(connection: Connection): () => boolean {
  const { _protocol: protocol } = connection as unknown as { _protocol: { _kexinit?: unknown } };
  assert('_kexinit' in protocol, 'ssh2 has no _kexinit');
  return () => protocol._kexinit !== undefined;
}
