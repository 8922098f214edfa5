// What all machines of one sandbox driver share.

import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import type { Addressing } from '#cloud/drivers/sandbox/network/network.ts';
import type { KeyedMutex } from '#lib/async/keyed-mutex.ts';

export interface SandboxContext extends Addressing {
  readonly dataDir: string;
  readonly host: SandboxHost;
  /** Bytes of memory that all machines together may use. */
  readonly machineMemory: number;
  /** One lock per machine id, and one each for `addresses`, `forwarding` and `rules`. */
  readonly locks: KeyedMutex;
  readonly log: (message: string) => void;
}
