// The plan of a database for the queries of a call, for tests that a query reads an index.

import { CompiledQuery, type RootOperationNode, SqliteAdapter } from 'kysely';
import type { Database } from '#db/tables/tables.ts';

/** Runs `ask` and returns the plans of its queries. */
export async function explain(
  db: Database,
  ask: (db: Database) => Promise<unknown>,
): Promise<string> {
  const nodes: RootOperationNode[] = [];
  const watching = db.withPlugin({
    transformQuery({ node }) {
      nodes.push(node);
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  await ask(watching);
  const executor = db.getExecutor();
  const isSqlite = executor.adapter instanceof SqliteAdapter;
  const lines: string[] = [];
  for (const node of nodes) {
    const { sql: text, parameters } = executor.compileQuery(node, { queryId: 'explained' });
    const query = `explain ${isSqlite ? 'query plan ' : ''}${text}`;
    const { rows } = await db.executeQuery<Record<string, unknown>>(
      CompiledQuery.raw(query, [...parameters]),
    );
    lines.push(...rows.map((row) => String(isSqlite ? row.detail : row['QUERY PLAN'])));
  }
  return lines.join('\n');
}
