// Builds the cloud from its parts: rows and routes on one side, drivers on the other, the reconciler between.

import type { Logger } from 'pino';
import type { Audit } from '#accounts/audit/audit.ts';
import { type AuditEvents, createAuditEvents } from '#cloud/api/audit-events.ts';
import { ensureFileHosts, type FileHost } from '#cloud/hosts/file-hosts.ts';
import { createHostChanges, type HostChanges } from '#cloud/hosts/host-changes.ts';
import type { HostDrivers } from '#cloud/hosts/host-drivers.ts';
import { createHostImages, type HostImages } from '#cloud/hosts/host-images.ts';
import { createHosts, type Hosts } from '#cloud/hosts/hosts.ts';
import { createUnreachableHosts } from '#cloud/hosts/monitor/unreachable-hosts.ts';
import { ensureOwnHost, type OwnHost } from '#cloud/hosts/own-host.ts';
import { createEngineMachines, type EngineMachines } from '#cloud/instances/engine-machines.ts';
import { createInstanceDetails, type InstanceDetails } from '#cloud/instances/instance-details.ts';
import { createInstanceEvents, type InstanceEvents } from '#cloud/instances/instance-events.ts';
import { createInstanceUsages, type InstanceUsages } from '#cloud/instances/instance-usage.ts';
import { createInstances, type Instances } from '#cloud/instances/instances.ts';
import { createLaunch, type LaunchInstance } from '#cloud/instances/launch.ts';
import { createMachineMeter } from '#cloud/instances/machine-meter.ts';
import { type Capacity, createCapacity, type HostDisk } from '#cloud/placement/capacity.ts';
import { createImages, type Images } from '#cloud/placement/images.ts';
import { createOffers, type OfferOptions, type Offers } from '#cloud/placement/instance-types.ts';
import { createModelGpus, type ModelGpus } from '#cloud/placement/model-gpus.ts';
import { createClaims } from '#cloud/reconcile/claims.ts';
import { createFilesystemWork } from '#cloud/reconcile/filesystem-work.ts';
import { createOrphanMachines, type OrphanMachines } from '#cloud/reconcile/orphan-machines.ts';
import { createReconciler, type Reconciler } from '#cloud/reconcile/reconciler.ts';
import { createFilesystems, type Filesystems } from '#cloud/resources/filesystems.ts';
import { type AccountFirewall, createAccountFirewall } from '#cloud/resources/firewall.ts';
import { createRulesets, type Rulesets } from '#cloud/resources/rulesets.ts';
import { createSshKeys, type SshKeys } from '#cloud/resources/ssh-keys.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import type { Seal } from '#lib/secrets/seal.ts';

export interface CloudOptions extends OfferOptions {
  /** Null if this server runs no machines itself. */
  ownHost: (OwnHost & { id: string }) | null;
  /** Hosts from the configuration file. */
  hosts: readonly FileHost[];
  /** How long a host may be silent before its instances are unhealthy. */
  hostGraceMs: number;
  /** Returns the disk of this server's host. By default it is never full. */
  ownDisk?: () => Promise<HostDisk | null>;
  /** vCPUs that CPU instances of a node may have together for each one that it has. Default: 1. */
  vcpuOvercommit?: number;
  instancesPerAccount: number;
  filesystemsPerAccount: number;
  rulesetsPerAccount: number;
  sshKeysPerAccount: number;
  /** How long a process may be silent before another one takes over its work. */
  leaseMs: number;
  /** True if no other server uses this database. All claims are then left over from earlier processes. */
  singleServer: boolean;
  /** True while machines that belong to no instance are kept, which a restore asks for. Default: false. */
  keepsOrphans?: () => boolean;
  /** The operating system of this server, for the descriptions of images. */
  system: string;
  architecture: 'x86_64' | 'arm64';
}

/** All parts of the cloud. Each route file takes only those that it needs. */
export interface Cloud {
  hosts: Hosts;
  hostChanges: HostChanges;
  hostImages: HostImages;
  /** Null if this server runs no machines itself. */
  modelGpus: ModelGpus | null;
  /** What can be launched on the hosts as they are now. */
  offers(): Offers;
  capacity: Capacity;
  images: Images;
  launch: LaunchInstance;
  instances: Instances;
  details: InstanceDetails;
  engineMachines: EngineMachines;
  sshKeys: SshKeys;
  filesystems: Filesystems;
  firewall: AccountFirewall;
  rulesets: Rulesets;
  auditEvents: AuditEvents;
  usages: InstanceUsages;
  events: InstanceEvents;
  reconciler: Reconciler;
  orphans: OrphanMachines;
}

export interface CloudParts {
  audit: Audit;
  drivers: HostDrivers;
  seal: Seal;
  log: Logger;
}

export async function createCloud(
  db: Database,
  clock: Clock,
  { audit, drivers, seal, log }: CloudParts,
  options: CloudOptions,
): Promise<Cloud> {
  const events = createInstanceEvents();
  const nudge = () => reconciler.nudge();
  const claims = createClaims(db, clock, { leaseMs: options.leaseMs });
  if (options.singleServer) await claims.releaseAll();
  const hosts = createHosts(
    db,
    clock,
    {
      drivers,
      unreachable: createUnreachableHosts(db, clock, { audit, events, log, nudge }),
      log,
      changed: (id) => reconciler.hint(id),
    },
    { graceMs: options.hostGraceMs, singleServer: options.singleServer },
  );
  const firewall = createAccountFirewall(db, clock, { audit, nudge });
  const filesystemWork = createFilesystemWork(db, clock, { claims, hosts, log });
  const reconciler = createReconciler(db, clock, {
    audit,
    claims,
    hosts,
    events,
    filesystemWork,
    firewall,
    seal,
    log,
    singleServer: options.singleServer,
  });
  await openHosts(db, clock, hosts, options);
  const ownId = options.ownHost?.id ?? null;
  const modelGpus = ownId === null ? null : createModelGpus(db, ownId, hosts.places);
  // Left over from a process that was killed: its models have ended with it.
  await modelGpus?.giveBack();
  const inFile = new Set(options.hosts.map(({ name }) => name));
  const resources = createResources(db, clock, { audit, events, hosts, nudge }, options);
  const meter = createMachineMeter(clock, hosts);
  return {
    ...resources,
    engineMachines: createEngineMachines(db, { ...resources, events, meter, hosts }),
    hosts,
    modelGpus,
    hostChanges: createHostChanges(db, clock, { audit, drivers, hosts, inFile, ownId }),
    hostImages: createHostImages(db, audit, hosts),
    details: createInstanceDetails(db, { audit, hosts, meter }),
    firewall,
    auditEvents: createAuditEvents(db),
    usages: createInstanceUsages(db, clock),
    events,
    reconciler,
    orphans: createOrphanMachines(db, hosts, log, options.keepsOrphans),
  };
}

/** Writes the rows of configured hosts and probes this server's own host. The start does not wait for the
 * others, which may be dead. */
async function openHosts(
  db: Database,
  clock: Clock,
  hosts: Hosts,
  { ownHost, hosts: fileHosts }: CloudOptions,
): Promise<void> {
  if (ownHost !== null) {
    const { id, ...own } = ownHost;
    await ensureOwnHost(db, clock, id, own);
  }
  await ensureFileHosts(db, clock, fileHosts);
  await hosts.refresh(ownHost === null ? [] : [ownHost.id]);
}

interface ResourceParts {
  audit: Audit;
  events: InstanceEvents;
  hosts: Hosts;
  nudge(): void;
}

/** What accounts own, and what they can launch. */
function createResources(
  db: Database,
  clock: Clock,
  { audit, events, hosts, nudge }: ResourceParts,
  options: CloudOptions,
) {
  const { vcpuOvercommit: overcommit = 1 } = options;
  const places = () => hosts.places().map((place) => ({ ...place, overcommit }));
  const { ownDisk = async () => null } = options;
  const offers = () => createOffers(places(), options);
  const maxEmulated = options.emulate ? options.emulatedInstances : 0;
  const capacity = createCapacity(db, { places, maxEmulated, ownDisk });
  const images = createImages(options, places);
  const changes = { audit, nudge };
  return {
    offers,
    capacity,
    images,
    launch: createLaunch(
      db,
      clock,
      { ...changes, capacity, events, images, offers, places },
      { maxPerAccount: options.instancesPerAccount },
    ),
    instances: createInstances(db, clock, { ...changes, events }),
    sshKeys: createSshKeys(db, clock, changes, { maxPerAccount: options.sshKeysPerAccount }),
    filesystems: createFilesystems(
      db,
      clock,
      { ...changes, places, ownDisk },
      { maxPerAccount: options.filesystemsPerAccount },
    ),
    rulesets: createRulesets(db, clock, changes, { maxPerAccount: options.rulesetsPerAccount }),
  };
}
