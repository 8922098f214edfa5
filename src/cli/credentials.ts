// The server and the credentials that commands use: MILLRACE_URL and MILLRACE_API_KEY, or the session that
// `millrace login` saved.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { toReason } from '#lib/start-error.ts';
import { CliError } from './output.ts';

export interface Credentials {
  url: string;
  /** The session token; null if not signed in. */
  session: string | null;
  apiKey: string | null;
}

const defaultUrl = 'http://127.0.0.1:8080';

export function loadCredentials(environment = process.env): Credentials {
  const file = credentialsFile(environment);
  const saved = existsSync(file) ? parseSaved(file) : null;
  const url = (environment.MILLRACE_URL ?? saved?.url ?? defaultUrl).replace(/\/+$/, '');
  // A session is sent only to the server that issued it.
  const session = saved !== null && saved.url === url ? saved.session : null;
  return { url, session, apiKey: environment.MILLRACE_API_KEY ?? null };
}

function parseSaved(file: string): { url: string; session: string } {
  try {
    const { url, session } = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof url === 'string' && typeof session === 'string') return { url, session };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) {
      throw new CliError(`Can't read ${file}: ${toReason(error)}.`, 1, error);
    }
  }
  throw new CliError(`${file} is damaged. Delete it and run \`millrace login\` again.`);
}

export function saveSession(url: string, session: string, environment = process.env): void {
  const file = credentialsFile(environment);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, `${JSON.stringify({ url, session })}\n`, { mode: 0o600 });
}

export function forgetSession(environment = process.env): void {
  rmSync(credentialsFile(environment), { force: true });
}

function credentialsFile(environment: NodeJS.ProcessEnv): string {
  const base = environment.XDG_CONFIG_HOME ?? join(homedir(), '.config');
  return join(base, 'millrace', 'session.json');
}
