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
  /** Token by which the server recognises this computer at the next sign-in; null before the first. */
  device: string | null;
  apiKey: string | null;
}

const defaultUrl = 'http://127.0.0.1:8080';

export function loadCredentials(environment = process.env): Credentials {
  const file = credentialsFile(environment);
  const saved = existsSync(file) ? parseSaved(file) : null;
  const url = (environment.MILLRACE_URL ?? saved?.url ?? defaultUrl).replace(/\/+$/, '');
  // Tokens are sent only to the server that issued them.
  const { session, device } = saved?.url === url ? saved : noTokens;
  return { url, session, device, apiKey: environment.MILLRACE_API_KEY ?? null };
}

const noTokens = { session: null, device: null };

type Saved = Omit<Credentials, 'apiKey'>;

function parseSaved(file: string): Saved {
  try {
    const { url, session = null, device = null } = JSON.parse(readFileSync(file, 'utf8'));
    const areTokens = [session, device].every((one) => one === null || typeof one === 'string');
    if (typeof url === 'string' && areTokens) return { url, session, device };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) {
      throw new CliError(`Can't read ${file}: ${toReason(error)}.`, 1, error);
    }
  }
  throw new CliError(`${file} is damaged. Delete it and run \`millrace login\` again.`);
}

export function saveCredentials(saved: Saved, environment = process.env): void {
  const file = credentialsFile(environment);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, `${JSON.stringify(saved)}\n`, { mode: 0o600 });
}

/** Keeps the device's token, for the next sign-in. */
export function forgetSession(environment = process.env): void {
  const { url, device } = loadCredentials(environment);
  if (device === null) rmSync(credentialsFile(environment), { force: true });
  else saveCredentials({ url, session: null, device }, environment);
}

function credentialsFile(environment: NodeJS.ProcessEnv): string {
  const base = environment.XDG_CONFIG_HOME ?? join(homedir(), '.config');
  return join(base, 'millrace', 'session.json');
}
