// BOUNDARY. How this server reaches hosts: its own, and every endpoint over the network. Another server's
// own host can't be opened from here, so its machines are left to that server.

import type { Driver, DriverReport, ImageReport } from '#cloud/drivers/driver.ts';
import type { HostRow } from '#db/cloud-rows.ts';

export interface HostDrivers {
  /** False: only another server can. */
  canOpen(host: HostRow): boolean;
  /** Throws when the host does not answer now; it is tried again later. */
  open(host: HostRow): Promise<Driver>;
  /** Makes a host trust this server by a token that works once. Throws DriverError. */
  enrol(ask: Enrolment): Promise<Enrolled>;
  /** Everything a host needs, tried one by one. Never throws for a host that is broken. */
  check(host: HostRow): Promise<HostCheck[]>;
}

export interface Enrolment {
  /** As `lxc config trust add` or `incus config trust add` prints it. */
  readonly token: string;
  /** Which of the token's addresses; null tries each. */
  readonly url: string | null;
}

export interface Enrolled {
  readonly url: string;
  readonly fingerprint: string;
}

export interface HostCheck {
  readonly name: 'reachability' | 'trust' | 'storage' | 'network' | 'images' | 'gpus';
  readonly ok: boolean;
  /** What was found, or what is wrong and how to mend it. */
  readonly message: string;
}

/** What a host last said of itself. */
export interface HostReport extends DriverReport {
  /** Null: it boots its own system. */
  images: ImageReport[] | null;
}

/** What an operator says of a host in the configuration file, where the engine can't. */
export interface HostExtras {
  readonly profiles?: readonly string[];
  /** For a bridge that the engine doesn't manage, or to leave a part of its subnet to others. */
  readonly addresses?: {
    readonly subnet: string;
    readonly gateway?: string;
    readonly first?: string;
    readonly last?: string;
  };
  /** Slices by the PCI address of the GPU they are of. */
  readonly mig?: Readonly<
    Record<string, readonly { readonly uuid: string; readonly profile: string }[]>
  >;
  /** Which image serves launches that name one the host doesn't have. */
  readonly default_image?: string;
}
