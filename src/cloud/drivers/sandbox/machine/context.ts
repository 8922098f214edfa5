// What all machines of one sandbox driver share.

import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import type { Addressing } from '#cloud/drivers/sandbox/network/network.ts';
import type { FairTurns } from '#lib/async/fair-turns.ts';
import type { KeyedMutex } from '#lib/async/keyed-mutex.ts';

export interface SandboxContext extends Addressing {
  readonly dataDir: string;
  readonly host: SandboxHost;
  /** True if machines read the host's /opt in place of their own. */
  readonly shareOpt: boolean;
  /** Bytes of memory that all machines together may use. */
  readonly machineMemory: number;
  /** Bytes of the host's disk that machines and filesystems leave to the server. */
  readonly diskReserve: number;
  /** Size of a new filesystem; null for a sixteenth of the free space. */
  readonly filesystemGib: number | null;
  /** Disk space that types divide; null for half of the free space when it was first measured. */
  readonly machinesDiskGib: number | null;
  /** One lock per machine id and filesystem, and one each for `addresses`, `forwarding`, `rules` and `disk space`. */
  readonly locks: KeyedMutex;
  /** What ssh clients send is processed in turns, by machine. */
  readonly turns: FairTurns;
  readonly log: (message: string) => void;
}
