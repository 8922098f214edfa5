// millrace login: signs in with email and password, or joins by an invitation or set-up link.

import { Command } from 'commander';
import { explain, send } from '#cli/client.ts';
import { loadTarget, saveSession, toAddress } from '#cli/credentials.ts';
import { CliError, report } from '#cli/output.ts';
import { ask } from '#cli/prompts.ts';

interface Options {
  url?: string;
  email?: string;
  link?: string;
  json?: true;
}

export function loginCommand(): Command {
  return new Command('login')
    .description('Sign in with email and password, or join by an invitation or set-up link')
    .option('--url <url>', 'Server to sign in to, e.g. http://127.0.0.1:8080')
    .option('--email <address>', 'Email address (default: ask)')
    .option(
      '--link <link>',
      'Invitation link, or the set-up link that the server prints at its first start',
    )
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      '\nWithout a terminal, email and password are read from standard input, one per line.',
    )
    .action(login);
}

async function login(options: Options): Promise<void> {
  const link = options.link === undefined ? null : parseLink(options.link);
  const given = link?.url ?? options.url ?? null;
  const { context, url, device } = loadTarget(given === null ? null : toAddress(given));
  // Before a person types a password for nothing.
  if (link !== null) await checkLink(url, link.token);
  else await send(url, 'GET', '/healthz', {});
  const secret = { message: link === null ? 'Password' : 'Choose a password', secret: true };
  const questions = options.email === undefined ? [{ message: 'Email' }, secret] : [secret];
  const answers = await ask(questions);
  const email = options.email ?? (answers[0] as string);
  const password = answers.at(-1) as string;
  const headers: Record<string, string> =
    device === null ? {} : { cookie: `millrace_device=${device}` };
  const response =
    link === null
      ? await send(url, 'POST', '/dashboard/api/login', headers, { email, password })
      : await send(url, 'POST', '/dashboard/api/join', {}, { token: link.token, email, password });
  const text = await response.text();
  if (!response.ok) throw new CliError(explain(response, text));
  const session =
    readCookie(response, '__Host-millrace_session') ?? readCookie(response, 'millrace_session');
  if (session === null)
    throw new CliError(`${url} accepted the sign-in but sent no session. Is it a Millrace server?`);
  saveSession(context, { url, session, device: readCookie(response, 'millrace_device') });
  report({ url, email, context }, `Signed in to ${url} as ${email}.`, options.json);
}

async function checkLink(url: string, token: string): Promise<void> {
  const response = await send(url, 'POST', '/dashboard/api/invitations/look', {}, { token });
  const text = await response.text();
  if (!response.ok) throw new CliError(explain(response, text));
}

function readCookie(response: Response, name: string): string | null {
  const cookie = response.headers.getSetCookie().find((one) => one.startsWith(`${name}=`));
  return cookie?.split(';')[0]?.split('=')[1] ?? null;
}

function parseLink(link: string): { url: string; token: string } {
  const [, url, token] = /^(https?:\/\/[^#]+?)\/*#\/join\/([A-Za-z0-9]+)$/.exec(link) ?? [];
  if (url === undefined || token === undefined) {
    throw new CliError('--link must be a Millrace link such as http://host:8080/#/join/....');
  }
  return { url, token };
}
