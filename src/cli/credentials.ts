// The server and the credentials that commands use: those of a context, or MILLRACE_URL and MILLRACE_API_KEY. The file
// holds one context at its top level, which is called `default`, and the others by their names below it.

import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { toReason } from '#lib/start-error.ts';
import { CliError } from './output.ts';

/** A named server with what this computer may use there. */
export interface Context {
  readonly url: string;
  /** The session token; null if not signed in. */
  readonly session: string | null;
  /** Token by which the server recognises this computer at the next sign-in; null before the first. */
  readonly device: string | null;
  readonly apiKey: string | null;
}

export interface Credentials extends Context {
  /** The context that they belong to, and that a sign-in is saved to. */
  readonly context: string;
}

export interface Contexts {
  readonly current: string;
  readonly all: Readonly<Record<string, Context>>;
}

type Environment = NodeJS.ProcessEnv;

export const defaultContext = 'default';
const defaultUrl = 'http://127.0.0.1:8080';
const noTokens = { session: null, device: null };
/** A file that people edit stays readable, and a loop that adds contexts ends. */
const maxContexts = 100;

/** Makes the rest of this process use the context, as --context asks. */
export function chooseContext(name: string, environment: Environment = process.env): void {
  environment.MILLRACE_CONTEXT = name;
}

/** A context that was asked for brings its own address and credentials. Otherwise MILLRACE_URL and
 * MILLRACE_API_KEY come before the current context. */
export function loadCredentials(environment: Environment = process.env): Credentials {
  const { current, all } = loadContexts(environment);
  const wanted = environment.MILLRACE_CONTEXT || null;
  if (wanted !== null) return { context: wanted, ...getContext(all, wanted) };
  const saved = all[current] ?? null;
  const url = toAddress(environment.MILLRACE_URL ?? saved?.url ?? defaultUrl);
  if (!isAddress(url))
    throw new CliError(`MILLRACE_URL is ${url}. Set it to a URL such as ${defaultUrl}.`, 2);
  const apiKey = environment.MILLRACE_API_KEY ?? null;
  if (saved?.url === url) return { context: current, ...saved, apiKey: apiKey ?? saved.apiKey };
  // Tokens are sent only to the server that issued them.
  const [name, context] = Object.entries(all).find(([, one]) => one.url === url) ?? [];
  if (name === undefined || context === undefined)
    return { context: defaultContext, url, ...noTokens, apiKey };
  return { context: name, ...context, apiKey: apiKey ?? context.apiKey };
}

/** Where a sign-in goes. Another address than that of the context gets a context that exists for it, a new one if
 * --context names one, or becomes the default. */
export function loadTarget(
  given: string | null,
  environment: Environment = process.env,
): Credentials {
  const { all } = loadContexts(environment);
  const wanted = environment.MILLRACE_CONTEXT || null;
  const fresh = { url: given ?? '', ...noTokens, apiKey: null };
  if (wanted !== null && given !== null && !Object.hasOwn(all, wanted))
    return { context: checkName(wanted), ...fresh };
  const saved = loadCredentials(environment);
  if (given === null || saved.url === given) return saved;
  if (wanted !== null)
    throw new CliError(
      `Context ${wanted} is for ${saved.url}. To sign in to ${given}, give another name.`,
    );
  const [name, context] = Object.entries(all).find(([, one]) => one.url === given) ?? [];
  return { context: name ?? defaultContext, ...(context ?? fresh) };
}

export const toAddress = (url: string) => url.replace(/\/+$/, '');

export const isAddress = (url: string) => /^https?:\/\//.test(url) && URL.canParse(url);

export function getContext(all: Contexts['all'], name: string): Context {
  const found = Object.hasOwn(all, name) ? all[name] : undefined;
  if (found !== undefined) return found;
  const names = Object.keys(all).join(', ') || 'none';
  throw new CliError(
    `There is no context ${name}. Known contexts: ${names}. Add one with \`millrace context add\`.`,
  );
}

/** Throws unless a context may have the name. */
export function checkName(name: string): string {
  if (/^[A-Za-z0-9][\w.-]{0,63}$/.test(name)) return name;
  throw new CliError(
    `A context's name has up to 64 letters, digits, dots, dashes and underscores, got ${name}.`,
    2,
  );
}

/** Keeps the API key of the context, if it is for the same server. */
export function saveSession(
  name: string,
  { url, session, device }: Omit<Context, 'apiKey'>,
  environment: Environment = process.env,
): void {
  const before = loadContexts(environment).all[name];
  const apiKey = before?.url === url ? before.apiKey : null;
  saveContext(name, { url, session, device, apiKey }, environment);
}

/** Adds the context, or replaces the one of this name. */
export function saveContext(
  name: string,
  context: Context,
  environment: Environment = process.env,
): void {
  const { current, all } = loadContexts(environment);
  if (!Object.hasOwn(all, name) && Object.keys(all).length >= maxContexts)
    throw new CliError(`There are ${maxContexts} contexts already. Remove one first.`);
  saveContexts({ current, all: { ...all, [name]: context } }, environment);
}

export function loadContexts(environment: Environment = process.env): Contexts {
  const file = credentialsFile(environment);
  if (!existsSync(file)) return { current: defaultContext, all: {} };
  try {
    return parseContexts(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError)
      throw new CliError(`${file} is damaged. Delete it and run \`millrace login\` again.`);
    throw new CliError(`Can't read ${file}: ${toReason(error)}.`, 1, error);
  }
}

interface SavedContext {
  url: string;
  session?: string | null;
  device?: string | null;
  api_key?: string | null;
}
type SavedFile = Partial<SavedContext> & {
  current?: string;
  contexts?: Record<string, SavedContext>;
};

/** Throws a TypeError if something is not what this program writes. */
function parseContexts({ current, contexts = {}, ...top }: SavedFile): Contexts {
  const saved = { ...('url' in top && { [defaultContext]: top as SavedContext }), ...contexts };
  const all = Object.entries(saved).map(([name, one]) => [name, parseContext(one)] as const);
  return { current: current ?? defaultContext, all: Object.fromEntries(all) };
}

function parseContext({ url, session = null, device = null, api_key = null }: SavedContext) {
  const isText = [session, device, api_key].every((one) => one === null || typeof one === 'string');
  if (typeof url !== 'string' || !isText) throw new TypeError('not a context');
  return { url, session, device, apiKey: api_key };
}

/** Written beside the file and renamed, so that a crash leaves the old one. */
export function saveContexts(
  { current, all }: Contexts,
  environment: Environment = process.env,
): void {
  const { [defaultContext]: top, ...others } = Object.fromEntries(
    Object.entries(all).map(([name, { apiKey, ...rest }]) => [name, { ...rest, api_key: apiKey }]),
  );
  const contexts = Object.keys(others).length > 0 ? { current, contexts: others } : {};
  const file = credentialsFile(environment);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, `${JSON.stringify({ ...top, ...contexts })}\n`, { mode: 0o600 });
  chmodSync(`${file}.new`, 0o600);
  renameSync(`${file}.new`, file);
}

/** Keeps the device's token, for the next sign-in. */
export function forgetSession(environment: Environment = process.env): void {
  const { context, url } = loadCredentials(environment);
  const saved = loadContexts(environment).all[context];
  if (saved?.url === url) saveContext(context, { ...saved, session: null }, environment);
}

function credentialsFile(environment: Environment): string {
  const base = environment.XDG_CONFIG_HOME ?? join(homedir(), '.config');
  return join(base, 'millrace', 'session.json');
}
