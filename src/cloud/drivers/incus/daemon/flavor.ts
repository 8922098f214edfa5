// LXD and Incus share one API. This file holds every difference that matters here.

export interface Flavor {
  readonly name: string;
  /** Its client on the command line. */
  readonly command: string;
  /** Prefix of headers in the files and images APIs. The daemon silently ignores a wrong one. */
  readonly headerPrefix: string;
  /** Sockets of the daemon on its own host, the usual one first. */
  readonly sockets: readonly string[];
  /** Bridge that the daemon's set-up creates. */
  readonly network: string;
  /** Field of a certificate request that carries the one-time trust token. */
  readonly tokenField: string;
  /** Server that its own client calls `images:`. */
  readonly imageServer: string;
}

const flavors: Readonly<Record<'lxd' | 'incus', Flavor>> = {
  lxd: {
    name: 'LXD',
    command: 'lxc',
    headerPrefix: 'X-LXD',
    sockets: ['/var/lib/lxd/unix.socket', '/var/snap/lxd/common/lxd/unix.socket'],
    network: 'lxdbr0',
    tokenField: 'password',
    imageServer: 'https://images.lxd.canonical.com',
  },
  incus: {
    name: 'Incus',
    command: 'incus',
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
  /** Undefined for clients that the daemon does not trust. */
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

/** Sets both fields: an untrusted client can't tell LXD from Incus, and each ignores the other's field. */
export function tokenFields(token: string): Record<string, string> {
  return Object.fromEntries(Object.values(flavors).map(({ tokenField }) => [tokenField, token]));
}
