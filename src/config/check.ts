// What a schema can't express: settings that depend on each other, and files that must exist. Each problem is
// a sentence that begins with its place.

import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { parseAddressList } from '#lib/network/address-list.ts';
import { toReason } from '#lib/start-error.ts';
import { checkDeployments } from './check-deployments.ts';
import { checkModels } from './check-models.ts';
import type { PlaceOf } from './place.ts';
import type { Config } from './schema.ts';

export function checkConfig(config: Config, placeOf: PlaceOf): string[] {
  const { server, database, redis, inference, models, cloud } = config;
  return [
    ...checkLargeBodies(inference, placeOf),
    ...checkTls(server, placeOf),
    ...checkMetricsAddresses(server, placeOf),
    ...checkDatabaseUrl(database.url, placeOf),
    ...checkRedisUrl(redis.url, placeOf),
    ...checkModels(models, placeOf),
    ...checkDeployments(config, placeOf),
    ...checkHosts(cloud, placeOf),
  ];
}

/** One caller gets half of the room, which must hold any body. */
function checkLargeBodies(inference: Config['inference'], placeOf: PlaceOf): string[] {
  const { large_bodies_mib: mib, max_body_mib: maxBodyMib } = inference;
  if (mib === null || mib >= maxBodyMib * 2) return [];
  return [
    `${placeOf(['inference', 'large_bodies_mib'])}: inference.large_bodies_mib is ${mib}; it must be at least twice inference.max_body_mib, ${maxBodyMib * 2}.`,
  ];
}

function checkHosts(cloud: Config['cloud'], placeOf: PlaceOf): string[] {
  const { client_certificate, client_key, hosts } = cloud;
  const place = placeOf(['cloud', 'hosts']);
  const names = hosts.map(({ name }) => name);
  const duplicates = names.filter((name, index) => names.indexOf(name) !== index);
  const unreadable = hosts.filter(({ url }) => url.startsWith('https:') && !URL.canParse(url));
  const hasHalfPair = (client_certificate === null) !== (client_key === null);
  return [
    ...unreadable.map(
      ({ name }) => `${place}: the url of host ${name} must be a URL such as https://host:8443.`,
    ),
    ...(hasHalfPair
      ? [
          `${placeOf(['cloud'])}: set both cloud.client_certificate and cloud.client_key, or neither.`,
        ]
      : []),
    ...duplicates.map(
      (name) => `${place}: two hosts are called ${name}. Names of hosts must be unique.`,
    ),
  ];
}

function checkTls(server: Config['server'], placeOf: PlaceOf): string[] {
  const { tls_certificate, tls_key } = server;
  if (tls_certificate === null && tls_key === null) return [];
  if (tls_certificate === null || tls_key === null) {
    return [
      `${placeOf(['server'])}: set both server.tls_certificate and server.tls_key, or neither.`,
    ];
  }
  const problems: string[] = [];
  const read = (name: 'tls_certificate' | 'tls_key', file: string) => {
    try {
      return readFileSync(file);
    } catch (error) {
      const place = placeOf(['server', name]);
      problems.push(`${place}: can't read server.${name} ${file}: ${toReason(error)}.`);
      return '';
    }
  };
  const pair = { cert: read('tls_certificate', tls_certificate), key: read('tls_key', tls_key) };
  if (problems.length > 0) return problems;
  try {
    createSecureContext(pair);
    return [];
  } catch (error) {
    const place = placeOf(['server', 'tls_certificate']);
    return [
      `${place}: server.tls_certificate and server.tls_key must be PEM files of the same key pair: ${(error as Error).message}.`,
    ];
  }
}

function checkMetricsAddresses(server: Config['server'], placeOf: PlaceOf): string[] {
  return server.metrics_addresses
    .filter((entry) => parseAddressList([entry]) === undefined)
    .map(
      (entry) =>
        `${placeOf(['server', 'metrics_addresses'])}: server.metrics_addresses must be addresses or networks such as 10.0.0.0/8, got ${JSON.stringify(entry)}.`,
    );
}

/** The problem never repeats the URL: it contains a password. */
function checkDatabaseUrl(url: string | null, placeOf: PlaceOf): string[] {
  // The driver accepts a URL without a host, as for a socket, and one with spaces.
  if (url === null || URL.canParse(url.replace('@/', '@host/').replaceAll(' ', '%20'))) return [];
  return [
    `${placeOf(['database', 'url'])}: database.url must be a URL such as postgres://user:password@host:5432/name.`,
  ];
}

function checkRedisUrl(url: string | null, placeOf: PlaceOf): string[] {
  if (url === null || URL.canParse(url)) return [];
  return [
    `${placeOf(['redis', 'url'])}: redis.url must be a URL such as redis://:password@host:6379/0.`,
  ];
}
