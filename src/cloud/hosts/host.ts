// A host as this server knows it: its row, what it reports about itself, and whether it answers.

import type { DriverReport, ImageReport } from '#cloud/drivers/driver.ts';
import type { HostRow } from '#db/tables/cloud-rows.ts';
import type { NewHost } from './schema.ts';

/** The last report of a host about itself. */
export interface HostReport extends DriverReport {
  /** Null if the host boots its own system. */
  images: ImageReport[] | null;
}

export interface HostState {
  readonly row: HostRow;
  readonly online: boolean;
  /** Why the host is offline, or why nothing is placed on some of its nodes; null otherwise. */
  readonly reason: string | null;
  readonly seenAt: number | null;
  readonly report: HostReport | null;
}

/** Settings of a host from the configuration file that its engine can't report. */
export interface HostExtras {
  readonly profiles?: readonly string[];
  /** The addresses to use on a bridge that the engine doesn't manage, or to leave part of its subnet unused. */
  readonly addresses?: {
    readonly subnet: string;
    readonly gateway?: string;
    readonly first?: string;
    readonly last?: string;
  };
  /** The physical network on which accounts get OVN networks. */
  readonly ovn_uplink?: string;
  /** MIG slices by the PCI address of their GPU. */
  readonly mig?: Readonly<
    Record<string, readonly { readonly uuid: string; readonly profile: string }[]>
  >;
  /** The image of launches that name none. */
  readonly default_image?: string;
}

export const parseReport = ({ report }: HostRow): HostReport | null =>
  report === null ? null : JSON.parse(report);

export const parseExtras = ({ extras }: HostRow): HostExtras => JSON.parse(extras);

/** The row of a host that has never answered. */
export const toHostRow = (
  known: Pick<HostRow, 'id' | 'name' | 'region' | 'driver' | 'source' | 'created_at'> &
    Partial<HostRow>,
): HostRow => ({
  url: null,
  fingerprint: null,
  target: null,
  pool: null,
  network: null,
  project: null,
  filesystems_path: null,
  extras: '{}',
  draining: 0,
  seen_at: null,
  status: 'offline',
  reason: null,
  report: null,
  ...known,
});

/** The columns that an operator sets for a host over the network. */
export const toEndpointColumns = (input: Omit<NewHost, 'token'>) => ({
  name: input.name,
  region: input.region,
  driver: 'incus' as const,
  target: input.target ?? null,
  pool: input.pool ?? null,
  network: input.network ?? null,
  project: input.project ?? null,
  filesystems_path: input.filesystems_path ?? null,
});

/** Fingerprints are stored without colons, in lower case. */
export const toPlainFingerprint = (fingerprint: string | null | undefined): string | null =>
  fingerprint?.toLowerCase().replaceAll(':', '') ?? null;
