// BOUNDARY. A driver creates machines: sandboxes on this host, instances of an Incus or LXD endpoint, or
// the records of the scripted stand-in. It holds no desired state: database rows say what should exist, the
// driver reports what does. Any call may be repeated after a crash, so every call is idempotent on the id.
//
// One word per thing. An *instance* is what a customer has: `Instance` in the API, `InstanceRow` in the
// database. A *machine* is what a driver creates for it:
// - `MachineSpec`: what the cloud asks a driver to create, derived from the row.
// - `MachineState`: what a driver reports about it.
// - `MachineRecord` (sandbox): the spec, address and host key of one sandbox, kept on disk.
// - `RunningMachine` (sandbox): a sandbox whose processes run and whose namespaces this process holds open.
// - `DaemonInstance` (incus): the JSON that LXD or Incus returns; these daemons call a machine an instance.

import type { Duplex, Readable } from 'node:stream';
import type { GpuStats } from '#lib/computer/nvidia-smi.ts';

/** Where a machine sees the weights of its engine. */
export const weightsFolder = '/weights';

export interface MachineSpec {
  /** Instance id, 32 lower-case hex digits. The driver marks the machine with it. */
  readonly id: string;
  /** Machines of one account reach each other; machines of different accounts never do. Undefined only in what
   * a driver recorded before accounts were known to it: such a machine reaches no other. */
  readonly account?: string;
  readonly hostname: string;
  /** Name of the node that must host the machine; null if the driver has only one node. */
  readonly node: string | null;
  /** Address chosen before boot and kept for the machine's life; null if the driver chooses. */
  readonly ip: string | null;
  readonly vcpus: number;
  readonly memoryGib: number;
  readonly storageGib: number;
  /** Driver-specific addresses of the GPUs attached to the machine; empty for none. */
  readonly gpus: readonly string[];
  /** OpenSSH public keys that may log in as `ubuntu`. */
  readonly authorizedKeys: readonly string[];
  /** Keys that may not log in, whatever `authorized_keys` in the machine says: `<type> <base64>`. Default: none. */
  readonly refusedKeys?: readonly string[];
  readonly filesystems: readonly { readonly id: string; readonly mountPoint: string }[];
  /** cloud-init user data, run once at first boot; null for none. */
  readonly userData: string | null;
  readonly image: string;
  readonly firewall: readonly InboundRule[];
  /** The machine runs an engine of this server: the program `millrace` is found in its search path, where the driver
   * can provide it. Default: false. */
  readonly runsEngine?: boolean;
  /**
   * A file or folder of this computer. The machine sees it, or the files in it, read-only in
   * `/weights`. Only the server sets it, from a deployment. Default: null.
   */
  readonly weights?: string | null;
}

/** What decides which packets reach a machine. */
export type FirewallSpec = Pick<MachineSpec, 'id' | 'account' | 'firewall'>;

/** What decides which keys open a machine. */
export type KeySpec = Pick<MachineSpec, 'id' | 'authorizedKeys' | 'refusedKeys'>;

/** Allows inbound traffic from outside the account. What no rule allows is dropped. */
export interface InboundRule {
  readonly protocol: 'tcp' | 'udp' | 'icmp' | 'all';
  /** First and last port, inclusive; null means every port. */
  readonly portRange: readonly [number, number] | null;
  /** IPv4 CIDR. */
  readonly sourceNetwork: string;
}

export type MachineState =
  /** The machine is being created; it has no address yet or can't be reached yet. */
  | { readonly state: 'starting'; readonly ip: string | null }
  /** The machine's ssh server responds. */
  | {
      readonly state: 'running';
      readonly ip: string;
      readonly privateIp: string;
      readonly sshPort: number;
    }
  /** The machine exists but does not run; `reason` is a sentence for people. */
  | { readonly state: 'stopped'; readonly reason: string }
  /** No machine with this id exists. */
  | { readonly state: 'absent' };

export interface Driver {
  readonly name: string;

  /** Describes what this host can and can't isolate, for the start-up table and type descriptions. */
  describe(): Promise<DriverReport>;

  /**
   * Brings to the host what the machine needs, such as a copy of its weights. Returns at once: what
   * is still done, such as `copying weights to berlin, 43 %`, or null if the machine can be
   * launched. Must be called again until then. Throws DriverError. Undefined on drivers that bring
   * nothing.
   */
  prepare?(spec: MachineSpec): Promise<string | null>;

  /** Creates and starts the machine, or does nothing if it exists. Returns once the machine was requested;
   * `inspect` reports when it runs. Throws DriverError. */
  launch(spec: MachineSpec): Promise<void>;

  /** Returns quickly and never throws for an absent machine. */
  inspect(id: string): Promise<MachineState>;

  /** Stops and starts the machine. Its disk, address and host keys are kept. */
  restart(spec: MachineSpec): Promise<void>;

  /** Stops the machine and removes its disk. Succeeds if it is already gone. Filesystems are kept. */
  terminate(id: string): Promise<void>;

  /** Lists the ids of all machines that carry this installation's mark, running or not. */
  list(): Promise<string[]>;

  /** Replaces the inbound rules and the account of a running machine. Does nothing where rules can't be
   * enforced. */
  setFirewall(spec: FirewallSpec): Promise<void>;

  /**
   * Makes a running machine refuse keys from now on, in place of those that it refused before, and
   * ends the ssh sessions that they opened. A driver that can't tell sessions apart ends all of a
   * machine that had one of the keys. Throws DriverError.
   */
  refuseKeys(spec: KeySpec): Promise<void>;

  /** Creates a filesystem. `node` is the node of the machine that mounts it first; null if the driver has
   * only one node or any node will do. */
  createFilesystem(id: string, node?: string | null): Promise<void>;
  /** Succeeds if the filesystem is already gone. */
  deleteFilesystem(id: string): Promise<void>;
  /** Returns the bytes used, or null where the driver can't tell. */
  filesystemUsage(id: string): Promise<number | null>;

  /**
   * Removes copies of weights that this server brought to the host and that hold none of the
   * sources. Undefined on drivers that copy nothing.
   */
  sweepWeights?(sources: readonly string[]): Promise<void>;

  /**
   * Removes the private networks of accounts that no machine has been on since the last call.
   * Undefined on drivers that create none.
   */
  sweepNetworks?(): Promise<void>;

  /** Returns at most the last 256 KiB of what the machine printed while booting. */
  bootLog(id: string): Promise<string>;

  /** Measures what a running machine uses now; resolves to undefined if it does not run. Nothing is sampled between
   * calls. Throws DriverError. */
  stats(id: string): Promise<MachineStats | undefined>;

  /** Calls `changed` when a machine may have changed on its own (null: any machine), so that the cloud need
   * not poll. Returns a function that stops it. Undefined on drivers that can't tell. */
  watch?(changed: (id: string | null) => void): () => void;

  /** Lists bootable images by the name a launch uses. Undefined on drivers that boot only the host's own
   * system. */
  images?(): Promise<ImageReport[]>;
  /** Adds an image under this name; another image with the name loses it. Returns once it can be booted.
   * Throws DriverError. Undefined on drivers that boot only the host's own system. */
  importImage?(name: string, source: ImageSource): Promise<void>;

  /** Opens a login shell as `ubuntu` for the browser; resolves to undefined if the machine does not run. The
   * terminal ends with its shell, with the machine, or by `kill`. Undefined on drivers without terminals. */
  attachTerminal?(id: string, size: TerminalSize): Promise<Terminal | undefined>;

  /**
   * Opens a TCP connection to a port of 127.0.0.1 inside a running machine. Firewall rules neither
   * forbid it nor need to allow it. It ends with the machine and with this driver. Throws
   * DriverError if nothing listens there. Undefined on drivers without such connections.
   */
  connect?(id: string, port: number): Promise<Duplex>;

  /** Runs a command inside a running machine, as the user that runs its user data, and returns the exit code. It is
   * ended after 30 seconds. Throws DriverError. Undefined on drivers that can't. */
  run?(id: string, command: readonly string[]): Promise<number>;

  /** Stops serving sessions. Machines that can outlive this process do; the next process adopts them. */
  close(): Promise<void>;
}

/** A figure, or a sentence on why this host can't measure it. */
export type Measured<Value> = { readonly value: Value } | { readonly unavailable: string };

export interface MachineStats {
  /** CPU time of all its processes in milliseconds. Grows from an arbitrary start; a restart may reset it. */
  readonly cpuMs: Measured<number>;
  /** Memory in use, without the file cache that the kernel would give up. */
  readonly memoryBytes: Measured<number>;
  /** What files use on the machine's own disk. */
  readonly diskBytes: Measured<number>;
  /** Bytes since the machine's interface exists. */
  readonly network: Measured<{ readonly receivedBytes: number; readonly sentBytes: number }>;
  /** In the order of the machine's GPUs; empty if it has none. */
  readonly gpus: Measured<readonly GpuStats[]>;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface Terminal {
  onData(listener: (data: Buffer) => void): void;
  /** Returns false if the program inside reads too slowly. Then wait for `onDrain`. */
  write(data: Buffer): boolean;
  onDrain(listener: () => void): void;
  resize(size: TerminalSize): void;
  pause(): void;
  resume(): void;
  onExit(listener: (exit: { code: number; signal: number | null }) => void): void;
  kill(): void;
}

export interface ImageReport {
  name: string;
  description: string;
  architecture: 'x86_64' | 'arm64';
}

export type ImageSource =
  /** One image file as is, or an image's two files as multipart form data; `type` is the media type. */
  | {
      readonly kind: 'upload';
      readonly body: Readable;
      readonly type: string;
      readonly bytes: number | null;
    }
  /** An image server that the host itself downloads from. */
  | { readonly kind: 'remote'; readonly remote: string; readonly image: string }
  /** An image that the host already has, perhaps under another name. */
  | { readonly kind: 'known'; readonly fingerprint: string }
  /** The small image, built from the programs of this computer. */
  | { readonly kind: 'recipe' };

/** One computer that machines are placed on. */
export interface NodeReport {
  name: string;
  /** False if no machine can be placed there now. */
  online: boolean;
  vcpus: number;
  memoryGib: number;
  storageGib: number;
  gpus: { address: string; model: string; memoryGib: number }[];
}

export interface DriverReport {
  isolated: boolean;
  /** One sentence, e.g. "Linux namespaces with cgroup limits". */
  isolation: string;
  /** Sentences on what could be isolated or limited better here, and how. Undefined if there is nothing. */
  advice?: string[];
  /** One sentence on inbound and outbound network rules. */
  network: string;
  /** Says that machines have no internet access here, why, and which command changes it. Undefined if they have
   * it. */
  networkObstacle?: string;
  vcpus: number;
  memoryGib: number;
  storageGib: number;
  gpus: { address: string; model: string; memoryGib: number }[];
  /** The nodes whose sums are the figures above; undefined if the driver has one node. */
  nodes?: NodeReport[];
  /** E.g. `lxd 5.0.2`; undefined if there is no daemon to name. */
  engine?: string;
  /** Identifies the endpoint or cluster; equal for every address and group it is reached by. */
  identity?: string;
  /** All addresses of the endpoint, so that it stays reachable when one of its computers fails. */
  urls?: string[];
  /** Range of addresses for machines. Undefined: 127.77.x.y. Null: the driver chooses. */
  addressPool?: { first: string; last: string; except?: string[] } | null;
}

/** `unavailable`: retry later. `impossible`: this launch can never work; the message says why. */
export class DriverError extends Error {
  readonly failure: 'unavailable' | 'impossible';

  constructor(failure: 'unavailable' | 'impossible', message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DriverError';
    this.failure = failure;
  }
}
