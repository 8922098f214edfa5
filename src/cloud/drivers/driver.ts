// BOUNDARY. What makes machines: sandboxes on this host, an Incus or LXD endpoint, or the scripted fake.
// A driver keeps no truth of its own: the rows say what should be, the driver says what is. Everything
// here may be called again after a crash, so every call is idempotent on the instance's id.

import type { Readable } from 'node:stream';

export interface MachineSpec {
  /** 32 lower-case hex, ours; the driver marks the machine with it. */
  readonly id: string;
  readonly hostname: string;
  /** Which of the driver's nodes makes it; null where there is only one. */
  readonly node: string | null;
  /** Chosen before boot and kept for the machine's life. Null where the driver chooses. */
  readonly ip: string | null;
  readonly vcpus: number;
  readonly memoryGib: number;
  readonly storageGib: number;
  /** Driver-specific addresses of the GPUs given to this machine; empty for none. */
  readonly gpus: readonly string[];
  /** OpenSSH public keys that may log in as `ubuntu`. */
  readonly authorizedKeys: readonly string[];
  readonly filesystems: readonly { readonly id: string; readonly mountPoint: string }[];
  /** cloud-init user data, run once at first boot; null for none. */
  readonly userData: string | null;
  readonly image: string;
  readonly firewall: readonly InboundRule[];
}

export interface InboundRule {
  readonly protocol: 'tcp' | 'udp' | 'icmp' | 'all';
  /** Inclusive; null means every port. */
  readonly portRange: readonly [number, number] | null;
  /** IPv4 CIDR. */
  readonly sourceNetwork: string;
}

export type MachineState =
  /** Being made; no address yet, or not yet reachable. */
  | { readonly state: 'starting'; readonly ip: string | null }
  /** ssh answers. */
  | {
      readonly state: 'running';
      readonly ip: string;
      readonly privateIp: string;
      readonly sshPort: number;
    }
  /** It exists but does not run; `reason` is a sentence for people. */
  | { readonly state: 'stopped'; readonly reason: string }
  /** Nothing with this id exists. */
  | { readonly state: 'absent' };

export interface Driver {
  readonly name: string;

  /** What this host can and cannot isolate, in sentences for the start-up table and type descriptions. */
  describe(): Promise<DriverReport>;

  /** Makes and starts the machine, or does nothing if it is there already. Returns when it was asked for;
   * `inspect` says when it runs. Throws DriverError. */
  launch(spec: MachineSpec): Promise<void>;

  /** Quick. Never throws for an absent machine. */
  inspect(id: string): Promise<MachineState>;

  /** Stops and starts it again, keeping disk, address and host keys. */
  restart(spec: MachineSpec): Promise<void>;

  /** Ends the machine and removes its disk. Silent when it is already gone. Filesystems stay. */
  terminate(id: string): Promise<void>;

  /** Ids of every machine that carries our mark, running or not. */
  list(): Promise<string[]>;

  /** Applies new inbound rules to a running machine; a no-op where rules can't be enforced. */
  setFirewall(id: string, rules: readonly InboundRule[]): Promise<void>;

  /** `node` is where the machine is that needs it first; null where there is only one, or any will do. */
  createFilesystem(id: string, node?: string | null): Promise<void>;
  /** Silent when it is already gone. */
  deleteFilesystem(id: string): Promise<void>;
  /** Bytes used, or null where the driver can't tell. */
  filesystemUsage(id: string): Promise<number | null>;

  /** What the machine printed while booting, newest last; at most 256 KiB. */
  bootLog(id: string): Promise<string>;

  /** Calls back when a machine may have changed without being asked to (null: any of them), so that nobody
   * has to poll. Returns how to stop. Drivers that can't tell leave this out. */
  watch?(changed: (id: string | null) => void): () => void;

  /** Images it can boot, by the name a launch gives. Drivers with only the host's own leave this out. */
  images?(): Promise<ImageReport[]>;
  /** Adds one under this name, which it takes from any other that has it. Returns when it can be booted.
   * Throws DriverError. Drivers with only the host's own leave this out. */
  importImage?(name: string, source: ImageSource): Promise<void>;

  /** A login shell as `ubuntu`, for the browser; undefined when the machine does not run. The terminal ends
   * with the shell, with the machine, or by `kill`. Drivers without terminals leave this out. */
  attachTerminal?(id: string, size: TerminalSize): Promise<Terminal | undefined>;

  /** Stops serving sessions. Machines that can live on do; after a new start they are adopted by `inspect`. */
  close(): Promise<void>;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface Terminal {
  onData(listener: (data: Buffer) => void): void;
  /** False when the program inside reads too slowly; `onDrain` says when to go on. */
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
  /** An image file as it is, or its two files as multipart form data; `type` says which. */
  | {
      readonly kind: 'upload';
      readonly body: Readable;
      readonly type: string;
      readonly bytes: number | null;
    }
  /** From a server of images that the host itself reaches. */
  | { readonly kind: 'remote'; readonly remote: string; readonly image: string }
  /** It has it already, perhaps by another name. */
  | { readonly kind: 'known'; readonly fingerprint: string }
  /** The small one, made here from the programs of this computer. */
  | { readonly kind: 'recipe' };

/** One computer that machines are placed on. */
export interface NodeReport {
  name: string;
  /** False: nothing can be placed there now. */
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
  /** One sentence on inbound and outbound network rules. */
  network: string;
  vcpus: number;
  memoryGib: number;
  storageGib: number;
  gpus: { address: string; model: string; memoryGib: number }[];
  /** Absent: the driver is one computer, and the figures above are its own; else they are the sums. */
  nodes?: NodeReport[];
  /** e.g. `lxd 5.0.2`; absent where there is no engine to name. */
  engine?: string;
  /** The same for every address and group by which one endpoint or cluster is reached. */
  identity?: string;
  /** Every address of it, so that the death of the computer behind one is not the death of all. */
  urls?: string[];
  /** What machines may be given as their address. Absent: 127.77.x.y; null: the driver chooses. */
  addressPool?: { first: string; last: string; except?: string[] } | null;
}

/** `unavailable`: try again later. `impossible`: this launch can never work; the message says why. */
export class DriverError extends Error {
  readonly failure: 'unavailable' | 'impossible';

  constructor(failure: 'unavailable' | 'impossible', message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DriverError';
    this.failure = failure;
  }
}
