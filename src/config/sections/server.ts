// How the server listens, and where its state is: the sections server, database and redis.

import { NullablePattern, NullableString, section, webAddress } from '#config/field.ts';
import { Type } from '#lib/schema/schema-builder.ts';

const hostName = '^(\\*|[A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])$';

export const ServerSettings = Type.Object(
  {
    host: Type.String({
      default: '127.0.0.1',
      minLength: 1,
      description:
        'Address to listen on. The default accepts only connections from this computer; 0.0.0.0 accepts connections from the network.',
    }),
    port: Type.Integer({
      default: 8080,
      minimum: 0,
      maximum: 65535,
      description: 'TCP port to listen on. 0 chooses a free port.',
    }),
    public_url: NullablePattern(
      webAddress,
      'URL under which people reach the server; used in links. If null, it is made from host and port.',
    ),
    peer_url: NullablePattern(
      webAddress,
      'URL under which the other servers of the same PostgreSQL database reach this one, such as http://10.0.0.5:8080. They send it requests for the models of its deployments. If null, they answer such requests with 503, unless the model has other backends.',
    ),
    allowed_hosts: Type.Array(Type.String({ pattern: hostName }), {
      default: [],
      description:
        'Names that the Host header may have besides localhost, 127.0.0.1, [::1] and that of public_url; others are refused with status 421. If empty, any name is allowed, except when host is a loopback address: pages on the internet can point their own names there. "*" allows any.',
    }),
    trusted_proxies: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 10,
      description:
        'Number of reverse proxies in front of the server that append to x-forwarded-for. With 0, the header is ignored.',
    }),
    connections_per_client: Type.Integer({
      default: 2000,
      minimum: 10,
      maximum: 1_000_000,
      description:
        'Maximum open connections of one client address, at most a quarter of the files that the server may open. More are closed at once. It does not apply to this computer, nor with trusted_proxies.',
    }),
    tls_certificate: NullableString(
      'PEM file with the TLS certificate. Set it together with tls_key to serve HTTPS. If null, the server speaks HTTP.',
    ),
    tls_key: NullableString('PEM file with the private key of tls_certificate.'),
    metrics_key: NullablePattern(
      '^[!-~]{16,256}$',
      'Key that /metrics requires, sent as "Authorization: Bearer <key>". If null, it needs no key.',
    ),
    metrics_addresses: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description:
        'Addresses and networks that may read /metrics, such as 10.0.0.5 or 10.0.0.0/8. If empty, any may.',
    }),
    drain_notice_seconds: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 600,
      description:
        'Seconds after SIGTERM in which /readyz returns 503 while requests are still accepted, so that a load balancer can stop sending them before the server drains. Set it to the time that your load balancer takes to notice.',
    }),
    drain_seconds: Type.Integer({
      default: 30,
      minimum: 0,
      maximum: 3600,
      description:
        'Seconds that running requests have to finish after SIGTERM and drain_notice_seconds.',
    }),
  },
  { ...section, description: 'How the server listens.' },
);

export const DatabaseSettings = Type.Object(
  {
    url: NullablePattern(
      '^postgres(ql)?://',
      'PostgreSQL database, as postgres://user:password@host/name. If null, SQLite in data_dir is used.',
    ),
    pool_size: Type.Integer({
      default: 10,
      minimum: 1,
      maximum: 1000,
      description: 'Maximum number of connections to PostgreSQL.',
    }),
    outage_minutes: Type.Integer({
      default: 10,
      minimum: 0,
      maximum: 1440,
      description:
        'Minutes for which an API key keeps working after its last check while PostgreSQL does not answer. A key that is revoked meanwhile keeps working for the same time. With 0, requests are refused as soon as PostgreSQL does not answer.',
    }),
    outage_usage_mib: Type.Integer({
      default: 256,
      minimum: 1,
      maximum: 1_000_000,
      description:
        'Maximum size in MiB of the file in data_dir that keeps usage until PostgreSQL answers again. A request takes about half a KiB.',
    }),
  },
  { ...section, description: 'The database.' },
);

export const RedisSettings = Type.Object(
  {
    url: NullablePattern(
      '^rediss?://',
      'Valkey or Redis, as redis://host:6379. Needed only by several servers on one database, to share limits. If null, each server counts for itself.',
    ),
  },
  { ...section, description: 'State that several servers on one database share outside of it.' },
);
