// The cloud from its parts: rows and routes on one side, a driver on the other, the reconciler between.

import type { Logger } from 'pino';
import type { Audit } from '#accounts/audit.ts';
import { type AuditEvents, createAuditEvents } from '#cloud/api/audit-events.ts';
import { ensureFileHosts, type FileHost } from '#cloud/hosts/file-hosts.ts';
import { createHostChanges, type HostChanges } from '#cloud/hosts/host-changes.ts';
import type { HostDrivers } from '#cloud/hosts/host-drivers.ts';
import { createHostImages, type HostImages } from '#cloud/hosts/host-images.ts';
import { createHosts, type Hosts } from '#cloud/hosts/hosts.ts';
import { ensureOwnHost, type OwnHost } from '#cloud/hosts/own-host.ts';
import { createSilence } from '#cloud/hosts/unreachable-hosts.ts';
import { createInstanceDetails, type InstanceDetails } from '#cloud/instances/instance-details.ts';
import { createInstanceEvents, type InstanceEvents } from '#cloud/instances/instance-events.ts';
import { createMachineUsages, type MachineUsages } from '#cloud/instances/instance-usage.ts';
import { createInstances, type Instances } from '#cloud/instances/instances.ts';
import { createLaunch, type LaunchInstance } from '#cloud/instances/launch.ts';
import { type Capacity, createCapacity } from '#cloud/placement/capacity.ts';
import { createImages, type Images } from '#cloud/placement/images.ts';
import { createOffers, type OfferOptions, type Offers } from '#cloud/placement/instance-types.ts';
import { createClaims } from '#cloud/reconcile/claims.ts';
import { createFilesystemWork } from '#cloud/reconcile/filesystem-work.ts';
import { createStrangers, type Strangers } from '#cloud/reconcile/orphan-machines.ts';
import { createReconciler, type Reconciler } from '#cloud/reconcile/reconciler.ts';
import { createFilesystems, type Filesystems } from '#cloud/resources/filesystems.ts';
import { createFirewall, type Firewall } from '#cloud/resources/firewall.ts';
import { createSshKeys, type SshKeys } from '#cloud/resources/ssh-keys.ts';
import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';

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
  singleServer: boolean;
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
  if (options.singleServer) await claims.releaseAll();
  const silence = createSilence(db, clock, { events, log, nudge });
  const hosts = createHosts(
    db,
    clock,
    { drivers, silence, log, changed: (id) => reconciler.hint(id) },
    { graceMs: options.hostGraceMs, singleServer: options.singleServer },
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
