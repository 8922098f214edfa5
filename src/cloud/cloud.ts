// The cloud from its parts: rows and routes on one side, a driver on the other, the reconciler between.

import type { Logger } from 'pino';
import type { Audit } from '../accounts/audit.ts';
import type { Database } from '../db/tables.ts';
import type { Clock } from '../lib/clock.ts';
import { type AuditEvents, createAuditEvents } from './audit-events.ts';
import { type Capacity, createCapacity } from './capacity.ts';
import { createClaims } from './claims.ts';
import { createFilesystemWork } from './filesystem-work.ts';
import { createFilesystems, type Filesystems } from './filesystems.ts';
import { createFirewall, type Firewall } from './firewall.ts';
import { ensureFileHosts, type FileHost } from './hosts/file-hosts.ts';
import { createHostChanges, type HostChanges } from './hosts/host-changes.ts';
import type { HostDrivers } from './hosts/host-drivers.ts';
import { createHostImages, type HostImages } from './hosts/host-images.ts';
import { createHosts, type Hosts } from './hosts/hosts.ts';
import { ensureOwnHost, type OwnHost } from './hosts/own-host.ts';
import { createSilence } from './hosts/silence.ts';
import { createImages, type Images } from './images.ts';
import { createInstanceDetails, type InstanceDetails } from './instance-details.ts';
import { createInstanceEvents, type InstanceEvents } from './instance-events.ts';
import { createOffers, type OfferOptions, type Offers } from './instance-types.ts';
import { createInstances, type Instances } from './instances.ts';
import { createLaunch, type LaunchInstance } from './launch.ts';
import { createMachineUsages, type MachineUsages } from './machine-usage.ts';
import { createReconciler, type Reconciler } from './reconciler.ts';
import { createSshKeys, type SshKeys } from './ssh-keys.ts';
import { createStrangers, type Strangers } from './strangers.ts';

export interface CloudOptions extends OfferOptions {
  /** Null where this server makes no machines itself. */
  ownHost: (OwnHost & { id: string }) | null;
  /** From the configuration file. */
  hosts: readonly FileHost[];
  /** How long a host may be silent before its instances are unhealthy. */
  hostGraceMs: number;
  instancesPerAccount: number;
  filesystemsPerAccount: number;
  rulesetsPerAccount: number;
  sshKeysPerAccount: number;
  /** How long a process may be silent before another takes its work over. */
  leaseMs: number;
  /** No other process uses this database: what is claimed was claimed by one that is gone. */
  alone: boolean;
  /** The host's system and processor, for the images' descriptions. */
  system: string;
  architecture: 'x86_64' | 'arm64';
}

export interface Cloud {
  hosts: Hosts;
  hostChanges: HostChanges;
  hostImages: HostImages;
  /** By what hosts report now. */
  offers(): Offers;
  capacity: Capacity;
  images: Images;
  launch: LaunchInstance;
  instances: Instances;
  details: InstanceDetails;
  sshKeys: SshKeys;
  filesystems: Filesystems;
  firewall: Firewall;
  auditEvents: AuditEvents;
  usages: MachineUsages;
  events: InstanceEvents;
  reconciler: Reconciler;
  strangers: Strangers;
}

export async function createCloud(
  db: Database,
  clock: Clock,
  { audit, drivers, log }: { audit: Audit; drivers: HostDrivers; log: Logger },
  options: CloudOptions,
): Promise<Cloud> {
  const { ownHost } = options;
  const events = createInstanceEvents();
  const nudge = () => reconciler.nudge();
  const claims = createClaims(db, clock, { leaseMs: options.leaseMs });
  if (options.alone) await claims.releaseAll();
  const silence = createSilence(db, clock, { events, log, nudge });
  const hosts = createHosts(
    db,
    clock,
    { drivers, silence, log, changed: (id) => reconciler.hint(id) },
    { graceMs: options.hostGraceMs, alone: options.alone },
  );
  const { places } = hosts;
  const offers = remember(hosts, () => createOffers(places(), options));
  const capacity = createCapacity(db, { places, offers });
  const images = createImages(options, places);
  const firewall = createFirewall(
    db,
    clock,
    { audit, nudge },
    { rulesetsPerAccount: options.rulesetsPerAccount },
  );
  const filesystemWork = createFilesystemWork(db, clock, { claims, hosts, log });
  const reconciler = createReconciler(db, clock, {
    claims,
    hosts,
    events,
    filesystemWork,
    firewall,
    log,
  });
  if (ownHost !== null) {
    const { id, ...own } = ownHost;
    await ensureOwnHost(db, clock, id, own);
  }
  await ensureFileHosts(db, clock, options.hosts);
  // The others may be dead, and the server starts all the same.
  await hosts.look(ownHost === null ? [] : [ownHost.id]);

  return {
    hosts,
    hostChanges: createHostChanges(db, clock, {
      audit,
      drivers,
      hosts,
      inFile: new Set(options.hosts.map(({ name }) => name)),
      ownId: ownHost?.id ?? null,
    }),
    hostImages: createHostImages(db, audit, hosts),
    offers,
    capacity,
    images,
    launch: createLaunch(
      db,
      clock,
      { audit, capacity, events, images, offers, places, nudge },
      { maxPerAccount: options.instancesPerAccount },
    ),
    instances: createInstances(db, clock, { audit, events, nudge }),
    details: createInstanceDetails(db, audit, hosts),
    sshKeys: createSshKeys(db, clock, audit, { maxPerAccount: options.sshKeysPerAccount }),
    filesystems: createFilesystems(
      db,
      clock,
      { audit, places, nudge },
      { maxPerAccount: options.filesystemsPerAccount },
    ),
    firewall,
    auditEvents: createAuditEvents(db),
    usages: createMachineUsages(db, clock),
    events,
    reconciler,
    strangers: createStrangers(db, hosts, log),
  };
}

/** Made again only when hosts may have changed. */
function remember<Value>(hosts: Hosts, make: () => Value): () => Value {
  let known: { revision: number; value: Value } | undefined;
  return () => {
    const revision = hosts.revision();
    if (known?.revision !== revision) known = { revision, value: make() };
    return known.value;
  };
}
