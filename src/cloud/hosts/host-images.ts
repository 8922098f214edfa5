// Images of hosts: what each host reports, and how an operator adds one. Launches can use it at once.

import type { Audit } from '#accounts/audit/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { DriverError, type ImageSource } from '#cloud/drivers/driver.ts';
import type { Database } from '#db/tables/tables.ts';
import { conflict, invalidBody, notFound } from '#lib/errors.ts';
import type { HostState } from './host.ts';
import type { Hosts } from './hosts.ts';
import type { HostImage } from './schema.ts';

export interface HostImages {
  list(): HostImage[];
  add(
    principal: SessionPrincipal,
    to: { readonly host: string; readonly name: string },
    source: ImageSource,
  ): Promise<HostImage>;
}

/** Each import may stream gigabytes through this process. */
const maxImports = 4;

export function createHostImages(db: Database, audit: Audit, hosts: Hosts): HostImages {
  let running = 0;

  async function add(
    principal: SessionPrincipal,
    to: { readonly host: string; readonly name: string },
    source: ImageSource,
  ): Promise<HostImage> {
    const host = hosts.all().find(({ row }) => row.name === to.host);
    if (host === undefined) throw notFound(`Host ${to.host}`);
    const { id } = host.row;
    const driver = hosts.driverOf(id);
    if (driver === undefined) throw conflict(`Host ${to.host} does not answer.`);
    if (driver.importImage === undefined) {
      throw conflict(`Host ${to.host} boots its own system and can't import images.`);
    }
    if (running >= maxImports)
      throw conflict(
        `${maxImports} images are being imported. Try again when one of them is done.`,
      );
    running += 1;
    try {
      await driver.importImage(to.name, source);
    } catch (error) {
      if (!(error instanceof DriverError)) throw error;
      if (source.kind === 'known' && error.failure === 'impossible') throw notFound('This image');
      throw error.failure === 'impossible' ? invalidBody(error.message) : conflict(error.message);
    } finally {
      running -= 1;
    }
    const details = { host: to.host, name: to.name, from: source.kind };
    await audit.record(db, principal, { action: 'image.imported', resourceId: id, details });
    hosts.suspect(id);
    await hosts.refresh([id]);
    const added = list().find((image) => image.host === to.host && image.name === to.name);
    if (added === undefined)
      throw conflict(`Host ${to.host} imported the image but no longer answers.`);
    return added;
  }

  const list = () => hosts.all().flatMap(imagesOf);

  return { list, add };
}

const imagesOf = ({ row, report }: HostState): HostImage[] =>
  (report?.images ?? []).map((image) => ({ host: row.name, region: row.region, ...image }));
