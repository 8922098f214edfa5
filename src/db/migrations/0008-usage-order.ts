// Requests' rows under the key by which they are read: one index where there were two, one for their ids and one
// for their order. Every request is written to each of them. Released: never edit, add a migration instead.

import { type Kysely, PostgresAdapter, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  if (db.getExecutor().adapter instanceof PostgresAdapter) {
    await sql`alter table usage_requests drop constraint usage_requests_pkey`.execute(db);
    await sql`alter table usage_requests add primary key (account_id, at, id)`.execute(db);
    await sql`drop index usage_requests_by_time`.execute(db);
    return;
  }
  // SQLite can't change a primary key.
  await sql`alter table usage_requests rename to former_requests`.execute(db);
  await sql`create table usage_requests (
    account_id text not null,
    at bigint not null,
    id text not null,
    key_id text,
    user_id text,
    operation text not null,
    model text not null,
    served_model text not null,
    backend text not null,
    status text not null,
    code text,
    prompt_tokens bigint not null,
    completion_tokens bigint not null,
    cached_tokens bigint not null,
    first_token_ms bigint,
    duration_ms bigint not null,
    cost_nano bigint not null,
    process text,
    primary key (account_id, at, id)
  )`.execute(db);
  await sql`insert into usage_requests (${columns}) select ${columns}
    from former_requests order by account_id, at, id`.execute(db);
  await sql`drop table former_requests`.execute(db);
  await sql`create index usage_requests_by_model
    on usage_requests (account_id, model, at, id)`.execute(db);
  await sql`create index usage_requests_by_key
    on usage_requests (account_id, key_id, at, id)`.execute(db);
  await sql`create index usage_requests_by_status
    on usage_requests (account_id, status, at, id) where status <> 'done'`.execute(db);
  await sql`create index usage_requests_running
    on usage_requests (process) where status = 'running'`.execute(db);
}

const columns = sql.raw(
  `account_id, at, id, key_id, user_id, operation, model, served_model, backend, status, code,
  prompt_tokens, completion_tokens, cached_tokens, first_token_ms, duration_ms, cost_nano, process`,
);
