// LXD and Incus speak one API with a few words of their own; this is all that differs for us.

export interface Flavor {
  readonly name: string;
  /** Of headers in the files and images APIs. A wrong one is silently ignored by the daemon. */
  readonly headerPrefix: string;
  /** Where the daemon listens on its own host, the usual place first. */
  readonly sockets: readonly string[];
  /** The bridge that its set-up makes. */
  readonly network: string;
  /** The member of a new certificate that carries a one-time trust token. */
  readonly tokenField: string;
  /** What its own client calls `images:`. */
  readonly imageServer: string;
}

export const flavors: Readonly<Record<'lxd' | 'incus', Flavor>> = {
  lxd: {
    name: 'LXD',
    headerPrefix: 'X-LXD',
    sockets: ['/var/lib/lxd/unix.socket', '/var/snap/lxd/common/lxd/unix.socket'],
    network: 'lxdbr0',
    tokenField: 'password',
    imageServer: 'https://images.lxd.canonical.com',
  },
  incus: {
    name: 'Incus',
    headerPrefix: 'X-Incus',
    sockets: ['/var/lib/incus/unix.socket', '/run/incus/unix.socket'],
    network: 'incusbr0',
    tokenField: 'trust_token',
    imageServer: 'https://images.linuxcontainers.org',
  },
};

export interface ServerInfo {
  readonly auth: string;
  readonly api_extensions: readonly string[];
  /** Only for those it trusts. */
  readonly environment?: {
    readonly server?: string;
    readonly server_version?: string;
    readonly server_name?: string;
    readonly server_clustered?: boolean;
    readonly certificate_fingerprint?: string;
    /** `lxc`, `qemu` or `lxc | qemu`. */
    readonly driver?: string;
    readonly architectures?: readonly string[];
  };
}

export function flavorOf(info: ServerInfo): Flavor {
  return flavors[info.environment?.server === 'incus' ? 'incus' : 'lxd'];
}

/** E.g. `lxd 5.0.2`. */
export function engineOf({ environment }: ServerInfo): string {
  return `${environment?.server ?? 'lxd'} ${environment?.server_version ?? ''}`.trim();
}

/** A daemon doesn't say which one it is before it trusts us, and each ignores the other's field. */
export function tokenFields(token: string): Record<string, string> {
  return Object.fromEntries(Object.values(flavors).map(({ tokenField }) => [tokenField, token]));
}
