// The cloud from its parts: rows and routes on one side, a driver on the other, the reconciler between.

import type { Logger } from 'pino';
import type { Audit } from '../accounts/audit.ts';
import type { Database } from '../db/tables.ts';
import type { Clock } from '../lib/clock.ts';
import { type AuditEvents, createAuditEvents } from './audit-events.ts';
import { type Capacity, createCapacity } from './capacity.ts';
import { createClaims } from './claims.ts';
import type { Driver, DriverReport } from './drivers/driver.ts';
import { createFilesystemWork } from './filesystem-work.ts';
import { createFilesystems, type Filesystems } from './filesystems.ts';
import { createFirewall, type Firewall } from './firewall.ts';
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
  region: string;
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
  region: string;
  report: DriverReport;
  offers: Offers;
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
  { audit, driver, log }: { audit: Audit; driver: Driver; log: Logger },
  options: CloudOptions,
): Promise<Cloud> {
  const report = await driver.describe();
  const offers = createOffers(report, options);
  const capacity = createCapacity(db, offers);
  const images = createImages(options.system, options.architecture);
  const events = createInstanceEvents();
  const nudge = () => reconciler.nudge();
  const claims = createClaims(db, clock, { leaseMs: options.leaseMs });
  if (options.alone) await claims.releaseAll();
  const firewall = createFirewall(
    db,
    clock,
    { audit, nudge },
    { rulesetsPerAccount: options.rulesetsPerAccount },
  );
  const filesystemWork = createFilesystemWork(db, clock, { claims, driver, log });
  const reconciler = createReconciler(db, clock, {
    claims,
    driver,
    events,
    filesystemWork,
    firewall,
    log,
  });

  return {
    region: options.region,
    report,
    offers,
    capacity,
    images,
    launch: createLaunch(
      db,
      clock,
      { audit, capacity, events, images, offers, nudge },
      { region: options.region, maxPerAccount: options.instancesPerAccount },
    ),
    instances: createInstances(db, clock, { audit, events, nudge }),
    details: createInstanceDetails(db, audit, driver),
    sshKeys: createSshKeys(db, clock, audit, { maxPerAccount: options.sshKeysPerAccount }),
    filesystems: createFilesystems(
      db,
      clock,
      { audit, nudge },
      { maxPerAccount: options.filesystemsPerAccount },
    ),
    firewall,
    auditEvents: createAuditEvents(db),
    usages: createMachineUsages(db, clock),
    events,
    reconciler,
    strangers: createStrangers(db, driver, log),
  };
}
