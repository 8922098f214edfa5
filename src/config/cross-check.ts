// What no schema can say: values that only make sense together, and files that must be there. Each problem
// is a sentence that begins with its place.

import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { toReason } from '#lib/start-error.ts';
import { checkModels } from './check-models.ts';
import type { Config } from './schema.ts';

/** Where a setting was made: `millrace.yaml:3`, a variable or a flag. */
export type PlaceOf = (path: readonly (string | number)[]) => string;

export function crossCheck(config: Config, placeOf: PlaceOf): string[] {
  const { server, database, redis, models, cloud } = config;
  return [
    ...checkTls(server, placeOf),
    ...checkDatabaseUrl(database.url, placeOf),
    ...checkRedisUrl(redis.url, placeOf),
    ...checkModels(models, placeOf),
    ...checkHosts(cloud, placeOf),
  ];
}

function checkHosts(cloud: Config['cloud'], placeOf: PlaceOf): string[] {
  const { client_certificate, client_key, hosts } = cloud;
  const names = hosts.map(({ name }) => name);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  const unreadable = hosts.filter(({ url }) => url.startsWith('https:') && !URL.canParse(url));
  return [
    ...unreadable.map(
      ({ name }) =>
        `${placeOf(['cloud', 'hosts'])}: the url of host ${name} is not an address such as https://host:8443.`,
    ),
    ...((client_certificate === null) === (client_key === null)
      ? []
      : [
          `${placeOf(['cloud'])}: set both cloud.client_certificate and cloud.client_key, or neither.`,
        ]),
    ...twice.map((name) => `${placeOf(['cloud', 'hosts'])}: two hosts are called ${name}.`),
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
      problems.push(`${place}: server.${name} ${file} can't be read: ${toReason(error)}.`);
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
      `${place}: server.tls_certificate and server.tls_key are not a PEM pair: ${(error as Error).message}.`,
    ];
  }
}

/** The sentence does not show the address: it holds a password. */
function checkDatabaseUrl(url: string | null, placeOf: PlaceOf): string[] {
  // The driver takes an address without a host, as for a socket, and one with spaces.
  if (url === null || URL.canParse(url.replace('@/', '@host/').replaceAll(' ', '%20'))) return [];
  return [
    `${placeOf(['database', 'url'])}: database.url is not an address such as postgres://user:password@host:5432/name.`,
  ];
}

function checkRedisUrl(url: string | null, placeOf: PlaceOf): string[] {
  if (url === null || URL.canParse(url)) return [];
  return [
    `${placeOf(['redis', 'url'])}: redis.url is not an address such as redis://:password@host:6379/0.`,
  ];
}
